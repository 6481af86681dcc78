package document

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/agent"
	"satchel/agent/child"
)

// HTML, DOCX and PDF are parsed by code that builds large trees or is
// third-party, so they are parsed in a child process of the same binary. The
// child reads one line of JSON (a childTask) and the file's bytes from its
// standard input, and writes lines of JSON (childLine) to its standard output.
// The parent keeps the child's input open, so that the child exits with it.

// role is the role of a child.
const role = "read-document"

// childTask is sent to a child before the file's bytes.
type childTask struct {
	Format      Format
	Name, Media string
	Size        int
	Limits      Limits
}

// childLine is one line of a child's answer. The last one has Done or Code set.
type childLine struct {
	Page    int        `json:",omitempty"`
	Text    string     `json:",omitempty"`
	Title   string     `json:",omitempty"`
	Pages   int        `json:",omitempty"`
	Done    bool       `json:",omitempty"`
	Code    agent.Code `json:",omitempty"`
	Message string     `json:",omitempty"`
}

// maxPiece limits the text in one line of a child's answer, in bytes.
const maxPiece = 32 << 10

// sink receives the text of a document piece by piece.
type sink struct {
	title     string
	pages     int
	remaining int // bytes of text left until the limit
	limit     int
	emit      func(page int, text string) error
}

// write appends text to a page; 0 for a format without pages.
func (s *sink) write(page int, text string) error {
	if s.remaining -= len(text); s.remaining < 0 {
		return tooMuchText(s.limit)
	}
	return s.emit(page, text)
}

// extractor reads one format in a child.
type extractor func(in input, out *sink) error

var extractors = map[Format]extractor{
	FormatHTML: extractHTML,
	FormatDOCX: extractDOCX,
	FormatPDF:  extractPDF,
}

// RunChild does a child's work and returns true if this process was started as
// a child of Read; otherwise it returns false immediately. A program that reads
// HTML, DOCX or PDF must call it first, and so must the TestMain of a package
// whose tests do:
//
//	if document.RunChild(os.Args[1:]) {
//		return
//	}
func RunChild(args []string) bool {
	if !child.HasRole(role, args) {
		return false
	}
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	serveChild(bufio.NewReader(os.Stdin), json.NewEncoder(out))
	out.Flush()
	return true
}

func serveChild(stdin *bufio.Reader, out *json.Encoder) {
	out.SetEscapeHTML(false)
	task, data, err := receiveTask(stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(child.ExitOrphaned)
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		os.Exit(child.ExitOrphaned)
	}()
	s := &sink{remaining: task.Limits.Text, limit: task.Limits.Text}
	s.emit = func(page int, text string) error {
		for len(text) > 0 {
			piece := text
			if len(piece) > maxPiece {
				end := maxPiece
				for !utf8.RuneStart(piece[end]) {
					end--
				}
				piece = piece[:end]
			}
			if err := out.Encode(childLine{Page: page, Text: piece}); err != nil {
				return err
			}
			text = text[len(piece):]
		}
		return nil
	}
	err = extract(
		task.Format,
		input{
			name:   task.Name,
			media:  task.Media,
			data:   data,
			limits: task.Limits,
		},
		s,
	)
	_ = out.Encode(lastLine(s, err)) // without a parent there is no one to answer
}

func lastLine(s *sink, err error) childLine {
	var e *agent.Error
	switch {
	case err == nil:
		return childLine{Title: s.title, Pages: s.pages, Done: true}
	case errors.As(err, &e):
		return childLine{Code: e.Code, Message: e.Message}
	}
	return childLine{Code: CodeBrokenFile, Message: "the file is damaged and cannot be read"}
}

// receiveTask reads what the parent sends and applies the task's limits.
func receiveTask(stdin *bufio.Reader) (task childTask, data []byte, err error) {
	line, err := stdin.ReadBytes('\n')
	if err != nil {
		return task, nil, err
	}
	if err := json.Unmarshal(line, &task); err != nil {
		return task, nil, err
	}
	debug.SetMemoryLimit(task.Limits.Memory * 3 / 4)
	most := child.Memory() + uint64(task.Limits.Memory)
	// Two threads may be running at the same time.
	limits := child.Limits{Memory: uint64(task.Limits.Memory), CPU: 2*task.Limits.Time + 2*time.Second}
	if err := limits.Apply(); err != nil {
		return task, nil, err
	}
	child.LowerPriority(5) // requests to the server come first
	go child.WatchMemory(func() uint64 { return most })
	data = make([]byte, task.Size)
	_, err = io.ReadFull(stdin, data)
	return task, data, err
}

// extract runs a format's extractor. A panic in a library is reported as a
// broken file.
func extract(format Format, in input, out *sink) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = broken("the file is damaged and cannot be read")
		}
	}()
	return extractors[format](in, out)
}

// clean makes a library's text valid for Document.Text.
func clean(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.IndexByte(text, 0) >= 0 || strings.IndexByte(text, '\r') >= 0 {
		text = strings.ReplaceAll(lines([]byte(text)), "\x00", " ")
	}
	return text
}
