package install

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// maxOutput limits the output of a program that is kept: its end, where the reason for
// a failure is.
const maxOutput = 64 << 10

// command is one run of another program.
type command struct {
	limit time.Duration
	name  string
	args  []string
	env   []string // added to our own
}

// run runs the command and returns its standard output. If it fails, the error contains
// the most informative line of its standard error.
func (c command) run(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.name, c.args...)
	cmd.WaitDelay = 5 * time.Second // grandchildren may hold its output open
	cmd.Env = append(cmd.Environ(), c.env...)
	var out, problems tail
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return string(out), nil
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return "", fmt.Errorf("not finished within %s", c.limit)
	}
	if problem := lastErrorLine(string(problems)); problem != "" {
		return "", fmt.Errorf("%w: %s", err, problem)
	}
	return "", err
}

// tail is a writer that keeps the end of what is written to it.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if excess := len(*t) - maxOutput; excess > 0 {
		*t = append((*t)[:0], (*t)[excess:]...)
	}
	return len(p), nil
}

// severity ranks a line of a program's output by how likely it says why the program failed.
func severity(line string) int {
	switch line = strings.ToLower(line); {
	case strings.Contains(line, "fatal"):
		return 2
	case strings.Contains(line, "error"):
		return 1
	}
	return 0
}

// lastErrorLine returns the most informative line of a program's output: the
// last one that mentions a fatal error, otherwise an error, otherwise the last one.
func lastErrorLine(output string) string {
	var last string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "at ") {
			continue
		}
		if severity(line) >= severity(last) {
			last = line
		}
	}
	return last[:min(len(last), 300)]
}
