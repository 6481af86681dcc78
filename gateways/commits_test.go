package gateways

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"satchel/agent"
)

// TestCommitsOfAnAnswer counts the commits from an inbound message to its sent
// answer: the message, the start of the answer, the answer, the start of
// sending, and its outcome. A crash between any two of them loses nothing and
// sends nothing twice, so none can be removed, and none should be added
// unnoticed.
func TestCommitsOfAnAnswer(t *testing.T) {
	r := newAnswerFixture(t)
	r.receiveMessage(t, 1, "the first makes the contact and the conversation")
	r.waitFinished(t, 1)
	r.waitSent(t, 1)
	r.waitRecorded(t, 1)
	before := commits(t, r)
	r.receiveMessage(t, 1, "Hello")
	r.waitFinished(t, 1)
	r.waitSent(t, 2)
	r.waitRecorded(t, 2)
	if n := commits(t, r) - before; n != 5 {
		t.Errorf("%d commits", n)
	}
}

// waitRecorded waits until n messages are stored as sent.
func (r *answerFixture) waitRecorded(t *testing.T, n int) {
	t.Helper()
	for sent := 0; sent < n; {
		events, err := r.db.Events(t.Context(), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		sent = 0
		for _, e := range events {
			if e.Type == agent.EventMessageSent {
				sent++
			}
		}
	}
}

// commits returns the number of transactions in the agent's -wal.
func commits(t *testing.T, r *answerFixture) (n int) {
	t.Helper()
	const header, frameHeader = 32, 24
	wal, err := os.ReadFile(filepath.Join(r.folder.Path(), "agents", r.db.ID()+".db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	page := int(binary.BigEndian.Uint32(wal[8:]))
	for at := header; at+frameHeader+page <= len(wal); at += frameHeader + page {
		if !bytes.Equal(wal[at+8:at+16], wal[16:24]) {
			break // from before the -wal restarted
		}
		if pages := binary.BigEndian.Uint32(wal[at+4:]); pages > 0 {
			n++
		}
	}
	return n
}
