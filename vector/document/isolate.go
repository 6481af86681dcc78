package document

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"satchel/agent"
	"satchel/agent/child"
)

// maxLine limits one line of a child's answer: a piece of text in which every
// byte is escaped.
const maxLine = 8*maxPiece + 1024

// isolated returns a reader that runs a format's extractor in a child; mark
// finds the blocks in the resulting text.
func isolated(format Format, mark func(o *outline, pages []span)) func(context.Context, input) (*Document, error) {
	return func(ctx context.Context, in input) (*Document, error) {
		run := childRun{limit: in.limits.Text}
		if err := run.run(ctx, format, in); err != nil {
			return nil, err
		}
		o := newOutline(run.text.String(), in.limits)
		mark(o, run.pages)
		doc := &Document{
			Title:  clipTitle(run.last.Title),
			Text:   o.text,
			Blocks: o.blocks,
			Pages:  run.last.Pages,
		}
		if doc.Title == "" {
			doc.Title = o.title()
		}
		return doc, nil
	}
}

// span is the position of a page's text.
type span struct {
	page       int32
	start, end int
}

// markdownBlocks finds the blocks of a text without pages.
func markdownBlocks(o *outline, _ []span) {
	markMarkdown(o, 0, len(o.text))
}

// pageParagraphs finds the paragraphs of each page.
func pageParagraphs(o *outline, pages []span) {
	for _, p := range pages {
		o.page = p.page
		markParagraphs(o, p.start, p.end)
	}
}

// childRun is one run of a child, on the parent's side.
type childRun struct {
	limit int
	text  strings.Builder
	pages []span
	last  childLine // the one with Done
}

func (c *childRun) run(ctx context.Context, format Format, in input) error {
	timed, cancel := context.WithTimeout(ctx, in.limits.Time)
	defer cancel()
	// Linux kills the child when the thread that started it exits.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	reader, err := child.Start(role)
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	defer reader.Close()
	defer context.AfterFunc(timed, reader.Kill)()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		sendTask(reader.Stdin, format, in)
	}()
	answer := c.receive(reader.Stdout)
	reader.Close() // unblocks sending, if the child no longer reads
	<-sent
	return childError(ctx, timed, in.limits, answer, reader)
}

// sendTask writes the task and the file. An error means that the child exited,
// which receive detects.
func sendTask(stdin io.Writer, format Format, in input) {
	task := childTask{
		Format: format,
		Name:   in.name,
		Media:  in.media,
		Size:   len(in.data),
		Limits: in.limits,
	}
	line, err := json.Marshal(task)
	if err != nil {
		return
	}
	if _, err := stdin.Write(append(line, '\n')); err == nil {
		_, _ = stdin.Write(in.data)
	}
}

// errNoAnswer means that a child exited without an answer.
var errNoAnswer = errors.New("document: the child stopped without an answer")

// receive reads a child's answer. It returns nil if the answer is complete,
// the child's *agent.Error, or errNoAnswer.
func (c *childRun) receive(stdout io.Reader) error {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		var line childLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return errNoAnswer
		}
		switch {
		case line.Done:
			c.last = line
			return nil
		case line.Code != "":
			return agent.Errorf(line.Code, "%s", line.Message)
		case c.text.Len()+len(line.Text) > c.limit+maxPiece:
			return tooMuchText(c.limit)
		}
		c.add(int32(line.Page), line.Text)
	}
	return errNoAnswer
}

// add appends text to a page. Pages are separated by a blank line.
func (c *childRun) add(page int32, text string) {
	n := len(c.pages)
	if n == 0 || c.pages[n-1].page != page {
		if n > 0 {
			c.text.WriteString("\n\n")
		}
		c.pages = append(c.pages, span{page: page, start: c.text.Len()})
		n++
	}
	c.text.WriteString(text)
	c.pages[n-1].end = c.text.Len()
}

// childError returns the error for the file from how its child ended.
func childError(ctx, timed context.Context, limits Limits, answer error, reader *child.Process) error {
	if answer == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var known *agent.Error
	if errors.As(answer, &known) {
		return known
	}
	if errors.Is(timed.Err(), context.DeadlineExceeded) {
		return agent.Errorf(CodeTimeout, "reading the file took longer than %s", limits.Time)
	}
	if reader.OutOfMemory() {
		return tooComplex("reading the file takes more than %d MB of memory", limits.Memory>>20)
	}
	return agent.Errorf(CodeBrokenFile, "the file is damaged, or too complex to be read").
		Because(errors.Join(answer, reader.Err()))
}
