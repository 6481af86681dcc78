package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// event is one server-sent event.
type event struct {
	name string
	data json.RawMessage
}

// maxEvent is the largest line of a stream.
const maxEvent = 16 << 20

var errConnectionLost = errors.New("the connection to the server ended before its answer did")

// stream makes a request and calls handle with each event of its answer, until
// handle reports that it is done.
func (a *api) stream(ctx context.Context, r request, handle func(event) (done bool, err error)) error {
	r.accept = "text/event-stream"
	resp, err := a.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	err = readEvents(resp.Body, handle)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func readEvents(body io.Reader, handle func(event) (bool, error)) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	var ev event
	var data []string
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			ev.name = value
		case "data":
			data = append(data, value)
		case "":
			if lines.Text() != "" || len(data) == 0 {
				continue // a comment, or nothing
			}
			ev.data = json.RawMessage(strings.Join(data, "\n"))
			if done, err := handle(ev); done || err != nil {
				return err
			}
			ev, data = event{}, nil
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return err
	}
	return errConnectionLost
}
