package openapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"satchel/agent"
	"satchel/agent/child"
)

// role is the role of a child. It reads one line of JSON (task) and the bytes of
// the description from its standard input, and answers with one JSON value
// (answer). The parent keeps the child's input open, so that the child exits
// with it.
const role = "read-api"

type task struct {
	Size int
	Base string
	CPU  time.Duration
}

type answer struct {
	Document agent.APIDocument
	Error    *problem
}

type problem struct {
	Code    agent.Code
	Message string
	Details map[string]any
}

// maxAnswer limits the answer of a child, in bytes.
const maxAnswer = 4 * maxTotal

// RunChild does a child's work and returns true if this process was started as a
// child of Read; otherwise it returns false immediately. A program that calls
// Read must call it first.
func RunChild(args []string) bool {
	if !child.HasRole(role, args) {
		return false
	}
	if err := serveChild(bufio.NewReader(os.Stdin), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(child.ExitOrphaned)
	}
	return true
}

func serveChild(stdin *bufio.Reader, stdout io.Writer) error {
	line, err := stdin.ReadBytes('\n')
	if err != nil {
		return err
	}
	var t task
	if err := json.Unmarshal(line, &t); err != nil {
		return err
	}
	debug.SetMemoryLimit(readMemory * 3 / 4)
	most := child.Memory() + readMemory
	if err := (child.Limits{Memory: readMemory, CPU: t.CPU}).Apply(); err != nil {
		return err
	}
	go child.WatchMemory(func() uint64 { return most })
	data := make([]byte, t.Size)
	if _, err := io.ReadFull(stdin, data); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		os.Exit(child.ExitOrphaned)
	}()
	out := bufio.NewWriterSize(stdout, 64<<10)
	if err := json.NewEncoder(out).Encode(parseAnswer(data, t.Base)); err != nil {
		return err
	}
	return out.Flush()
}

// parseAnswer parses a description. After a panic, the description counts as unreadable.
func parseAnswer(data []byte, base string) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{Error: &problem{Code: agent.CodeInvalidFile, Message: "the description cannot be read"}}
		}
	}()
	doc, err := parse(data, base)
	var known *agent.Error
	switch {
	case errors.As(err, &known):
		return answer{Error: &problem{known.Code, known.Message, known.Details}}
	case err != nil:
		return answer{Error: &problem{Code: agent.CodeInvalidFile, Message: "the description cannot be read"}}
	}
	return answer{Document: doc}
}

// Read reads a description in a child process, within limits of size, processor time
// and memory. base is the address that it was read from, or ""; relative addresses
// are resolved against it.
func Read(ctx context.Context, data []byte, base string) (agent.APIDocument, error) {
	return readWithin(ctx, data, base, readTime)
}

// readWithin is Read with a limit of processor time, in whole seconds.
func readWithin(ctx context.Context, data []byte, base string, limit time.Duration) (agent.APIDocument, error) {
	if len(data) > agent.MaxAPIDocument {
		return agent.APIDocument{}, tooLarge()
	}
	timed, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	// Linux kills the child when the thread that started it exits.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process, err := child.Start(role)
	if err != nil {
		return agent.APIDocument{}, fmt.Errorf("openapi: %w", err)
	}
	defer process.Close()
	defer context.AfterFunc(timed, process.Kill)()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		line, err := json.Marshal(task{
			Size: len(data),
			Base: base,
			CPU:  limit,
		})
		if err != nil {
			return
		}
		if _, err := process.Stdin.Write(append(line, '\n')); err == nil {
			_, _ = process.Stdin.Write(data) // a child that has ended gives no answer
		}
	}()
	var a answer
	err = json.NewDecoder(io.LimitReader(process.Stdout, maxAnswer)).Decode(&a)
	process.Close() // unblocks sending, if the child no longer reads
	<-sent
	if err != nil && ctx.Err() == nil && process.ProcessorTime() >= limit*9/10 { // the kernel counts more coarsely
		err = errTime
	}
	return result(ctx, timed, a, err, process)
}

// errTime is for a child that used up its processor time.
var errTime = errors.New("too much processor time")

// result returns what the answer of a child, or its end, means.
func result(ctx, timed context.Context, answer answer, err error, process *child.Process) (agent.APIDocument, error) {
	invalid := func(format string, args ...any) *agent.Error {
		return agent.Errorf(agent.CodeInvalidFile, format, args...).With("field", "document")
	}
	switch {
	case err == nil && answer.Error == nil:
		return answer.Document, nil
	case err == nil:
		e := agent.Errorf(answer.Error.Code, "%s", answer.Error.Message)
		for name, value := range answer.Error.Details {
			e = e.With(name, value)
		}
		return answer.Document, e
	case ctx.Err() != nil:
		return answer.Document, ctx.Err()
	case errors.Is(err, errTime):
		return answer.Document, invalid("reading the description takes more than %s of processor time", readTime)
	case timed.Err() != nil:
		return answer.Document, invalid("reading the description took longer than %s", readWait)
	case process.OutOfMemory():
		return answer.Document, invalid("reading the description takes more than %d MB of memory", readMemory>>20)
	}
	return answer.Document, invalid("the description cannot be read").Because(errors.Join(err, process.Err()))
}
