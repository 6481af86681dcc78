package satchel

import (
	"bufio"
	"context"
	"encoding/json"
	"strings"
)

// maxEvent is the largest line of a stream.
const maxEvent = 16 << 20

// events calls handle with each server-sent event of an answer until handle
// reports that it is done, or the stream ends.
func (a *Agent) events(
	ctx context.Context,
	method, path string,
	body any,
	handle func(name string, data []byte) (done bool, err error),
) error {
	r := request{method: method, path: a.path + path, accept: "text/event-stream"}
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r.body, r.media = raw, "application/json"
	}
	resp, err := a.client.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	name, data := "message", []string(nil)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "event":
			name = value
		case field == "data":
			data = append(data, value)
		case lines.Text() == "" && data != nil:
			if done, err := handle(name, []byte(strings.Join(data, "\n"))); done || err != nil {
				return err
			}
			name, data = "message", nil
		}
	}
	return lines.Err()
}
