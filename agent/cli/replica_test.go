package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// fakeReplicas records its calls.
type fakeReplicas struct{ calls []string }

var deletedAt = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func (f *fakeReplicas) List(context.Context) ([]agent.Replica, error) {
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	return []agent.Replica{
		{ID: "a", Name: "bakery", From: at, To: at},
		{ID: "b", Name: "gone", From: at, To: at, Deleted: deletedAt},
		{ID: "c", Name: "damaged", From: at, To: at},
		{ID: "d", Name: "new"},
		{ID: "e", Name: "broken", Problem: "the snapshot is missing"},
	}, nil
}

func (f *fakeReplicas) Restore(
	_ context.Context,
	idOrName string,
	at time.Time,
	folder string,
) (string, time.Time, error) {
	f.calls = append(f.calls, fmt.Sprintf("restore %s %d %s", idOrName, max(0, at.Unix()), folder))
	return "x", deletedAt, nil
}

func (f *fakeReplicas) Put(_ context.Context, idOrName string, at time.Time, folder string) (string, time.Time, error) {
	f.calls = append(f.calls, fmt.Sprintf("put %s %d %s", idOrName, max(0, at.Unix()), folder))
	if idOrName == "c" {
		return "", at, errors.New("no")
	}
	return idOrName, deletedAt, nil
}

func (f *fakeReplicas) Doctor(context.Context) agent.Finding { return agent.Finding{OK: true} }

func TestRestoreFromReplicas(t *testing.T) {
	for line, want := range map[string]string{
		"restore bakery --from s3://b": "restore bakery 0 ./data",
		"restore bakery --from s3://b --data elsewhere --at " +
			"2026-03-01T00:00:00+01:00": "restore bakery 1772319600 elsewhere",
		"restore bakery --from s3://b --to new": "put bakery 0 new",
		"restore --all --from s3://b --to new":  "put a 0 new; put c 0 new; put e 0 new; error: agent c: no",
		"restore --all --from s3://b --to new --at 2026-03-01T12:00:00Z": "put a 1772366400 new; put b 1772366400 " +
			"new; put c 1772366400 new; put e 1772366400 new; error: agent c: no",
		"restore --all --from s3://b --to new --at 2025-01-01T00:00:00Z": "put e 1735689600 new",
		"restore bakery --at 2026-03-01T00:00:00Z": "error: --at, --to and --all need --from, " +
			"which says where the replicas are",
		"restore --all --from s3://b": "error: --all needs --to, the " +
			"data folder to restore to",
		"restore bakery --from bad": `error: --from "bad" is bad`,
		"restore bakery --from s3://b --at yesterday": `error: --at "yesterday" is not a time ` +
			`like 2026-11-23T10:30:00Z or "2026-11-23 10:30"`,
		"replicas list": "error: set --from, or --replicate as for the server",
	} {
		f := &fakeReplicas{}
		p := Program{
			Getenv: func(string) string { return "" },
			Out:    &bytes.Buffer{},
			Replicas: func(target string) (Replicas, error) {
				if target != "s3://b" {
					return nil, errors.New("is bad")
				}
				return f, nil
			},
		}
		if err := p.Run(t.Context(), strings.Fields(line)); err != nil {
			f.calls = append(f.calls, "error: "+err.Error())
		}
		if got := strings.Join(f.calls, "; "); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestListReplicas(t *testing.T) {
	var out bytes.Buffer
	p := Program{
		Getenv:   func(string) string { return "" },
		Out:      &out,
		Replicas: func(string) (Replicas, error) { return &fakeReplicas{}, nil },
	}
	if err := p.Run(t.Context(), []string{"replicas", "list", "--from", "x"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a  from 2026-03-01T00:00:00Z to 2026-03-01T00:00:00Z  bakery\n",
		", deleted 2026-03-02T00:00:00Z  gone\n",
		"d  no snapshot yet  new\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %q", out.String(), want)
		}
	}
}

func TestTimesOfRestore(t *testing.T) {
	zone := time.FixedZone("x", 3600)
	want := time.Date(2026, 3, 1, 10, 30, 0, 0, zone)
	for _, text := range []string{"2026-03-01T09:30:00Z", "2026-03-01 10:30", "2026-03-01 10:30:00"} {
		if got, err := parseTime(text, zone); err != nil || !got.Equal(want) {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
}
