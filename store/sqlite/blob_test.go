package sqlite

import (
	"bytes"
	"testing"
)

func TestBlob(t *testing.T) {
	c := open(t, Source{})
	long := bytes.Repeat([]byte("0123456789"), 5000)
	exec(t, c, "CREATE TABLE pieces (n INTEGER PRIMARY KEY, content BLOB)")
	exec(t, c, "INSERT INTO pieces VALUES (1, ?), (7, ?)", long, []byte("short"))
	b, err := c.OpenBlob("pieces", "content", 1)
	if err != nil {
		t.Fatal(err)
	}
	read := func(row int64, offset, n int, want string) {
		t.Helper()
		if err := b.MoveTo(row); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Read(offset, n); err != nil || string(got) != want {
			t.Errorf("row %d from %d: %q %v, want %q", row, offset, got, err, want)
		}
	}
	read(1, 49_995, 5, "56789")
	read(1, 0, len(long), string(long))
	read(7, 1, 3, "hor")
	read(1, 12_342, 4, "2345")
	if got, err := b.Read(len(long)-1, 2); err == nil {
		t.Errorf("after the end is %q", got)
	}
	if err := b.MoveTo(2); err == nil {
		t.Error("a row that is missing is read")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.OpenBlob("pieces", "missing", 1); err == nil {
		t.Error("a column that is missing is read")
	}
	exec(t, c, "DROP TABLE pieces") // refused while something is being read
}
