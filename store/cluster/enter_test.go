package cluster

import (
	"net"
	"testing"
	"time"

	"satchel/agent"
)

// Agents that somebody waits for are read first, then those whose work is due first,
// of which there are fewer at a time.
func TestOrderOfEntries(t *testing.T) {
	c := &Cluster{entries: entries{byID: map[string]*entry{}}}
	entered := map[string]*entry{}
	for _, id := range []string{"due", "later", "idle", "wanted"} {
		entered[id] = c.addEntryLocked(known{id: id})
	}
	c.wantLocked(entered["wanted"])
	for _, want := range []string{"wanted", "due", "later", ""} {
		got := ""
		if e := c.nextEntryLocked(); e != nil {
			got = e.id
		}
		if got != want {
			t.Fatalf("%q is read, not %q", got, want)
		}
	}
	c.wantLocked(entered["due"]) // which is being read
	c.wantLocked(entered["idle"])
	if e := c.nextEntryLocked(); e != entered["idle"] {
		t.Errorf("%v is read, not what is wanted", e)
	}
	if e := c.nextEntryLocked(); e != nil {
		t.Errorf("%q is read beyond the limit", e.id)
	}
}

func TestDue(t *testing.T) {
	at := agent.At(time.Unix(1000, 0))
	none, some := &entry{}, &entry{}
	some.summary.Pending.Messages, some.summary.Pending.Schedules = agent.At(time.Unix(2000, 0)), at
	if !some.due().Equal(at.Time) || !none.due().After(some.due()) {
		t.Errorf("due %v and %v", some.due(), none.due())
	}
}

func TestRefuses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	if refuses(address) {
		t.Error("a listener refuses")
	}
	_ = l.Close()
	if !refuses(address) {
		t.Error("a listener that was closed does not refuse")
	}
	if refuses("http://name.invalid:1") || refuses("://") {
		t.Error("a name that does not exist refuses")
	}
}
