package document

import "time"

// Limits limit the cost of one file. A zero field means its default.
type Limits struct {
	Text   int           // bytes of extracted text, 64 MiB; at most 1 GiB
	Blocks int           // 1,000,000; the rest becomes one paragraph
	Depth  int           // nesting of JSON, 200; of DOCX five times as much
	Pages  int           // of a PDF, 5,000
	Time   time.Duration // of the child that reads HTML, DOCX or PDF, 30 s
	Memory int64         // of that child, in bytes, 512 MiB
}

// Fixed limits.
const (
	maxColumns     = 16384 // of a CSV file, as in common spreadsheets
	maxText        = 1 << 30
	maxTitle       = 200 // characters
	maxHeadingText = 120 // characters of one heading in a path
)

func (l Limits) orDefaults() Limits {
	setDefault(&l.Text, 64<<20)
	setDefault(&l.Blocks, 1_000_000)
	setDefault(&l.Depth, 200)
	setDefault(&l.Pages, 5000)
	setDefault(&l.Time, 30*time.Second)
	setDefault(&l.Memory, 512<<20)
	l.Text = min(l.Text, maxText)
	return l
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
