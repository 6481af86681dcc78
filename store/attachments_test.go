package store

import (
	"fmt"
	"strings"
	"testing"

	"satchel/agent"
)

// TestOldAttachmentsMakeRoom checks that an agent's oldest files are removed to make room
// for newer ones, that their messages say so, and that deleting a message deletes its
// files.
func TestOldAttachmentsMakeRoom(t *testing.T) {
	db := openFolder(t).Default()
	ctx := t.Context()
	g, err := db.CreateGateway(ctx, agent.Gateway{Type: agent.GatewaySlack, Name: "g"}, agent.GatewayConfig{}, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.SQL(ctx, "UPDATE gateways SET status = 'active'", Params{}, Access{Write: true}); err != nil {
		t.Fatal(err)
	}
	var conversation string
	for n := range 3 {
		in := agent.Inbound{
			ID:          fmt.Sprint(n),
			Thread:      "T",
			From:        agent.ContactChange{ExternalID: agent.Some("x")},
			Attachments: []agent.Attachment{{URL: "https://x.example/f"}},
		}
		got, err := db.ReceiveInbound(ctx, g.ID, []Receipt{{Messages: []agent.Inbound{in}}}, 0)
		if err != nil || len(got.Messages) != 1 {
			t.Fatal(got, err)
		}
		conversation = got.Messages[0].ConversationID
		d, err := db.BeginAttachment(ctx, conversation, agent.Now())
		if err != nil || d == nil {
			t.Fatal(d, err)
		}
		file, err := db.ReceiveFile(ctx, "f", "image/png", strings.NewReader("bytes"), 10)
		if err != nil {
			t.Fatal(err)
		}
		file.Size = agent.MaxStoredAttachmentSize / 2
		if err := db.EndAttachment(ctx, d, file); err != nil {
			t.Fatal(err)
		}
	}
	state := func() string {
		r, err := db.SQL(
			ctx,
			"SELECT metadata ->> '$.attachments[0].status' FROM messages ORDER BY id",
			Params{},
			Access{},
		)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := Read(ctx, db, func(tx *Tx) (n int, err error) {
			return n, tx.value(&n, "SELECT count(*) FROM _file_parts")
		})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(r.Rows, parts)
	}
	if got := state(); got != "[[removed] [stored] [stored]] 2" {
		t.Error(got)
	}
	if err := db.DeleteConversation(ctx, conversation); err != nil {
		t.Fatal(err)
	}
	if got := state(); got != "[] 0" {
		t.Error(got)
	}
}
