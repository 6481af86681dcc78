package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"satchel/agent"
)

// TestAlbum: the messages of an album are one message with all its files, and one event
// once no more of them arrive.
func TestAlbum(t *testing.T) {
	db := openFolder(t).Default()
	g := inboundGateway(t, db, agent.GatewayTelegram, agent.GatewayActive)
	var before int64
	for i, text := range []string{"[photo]", "[photo]", "My cakes", "[video]", "[video]"} {
		in := inboundText(fmt.Sprint("1/", min(i, 3)), "42", "telegram:42", text) // the last is a repeat
		in.Album, in.Metadata = "M", []byte(`{"media_group_id":"M"}`)
		in.Attachments = []agent.Attachment{{ID: fmt.Sprint("F", i)}}
		if received := receiveOne(t, db, g, in); (received.New == 1) != (i < 4) {
			t.Errorf("message %d: %+v", i, received)
		}
	}
	types, _ := eventTypes(t, db, before)
	if slices.Contains(types, "message.received") {
		t.Errorf("events before the album is whole: %v", types)
	}
	page, _, err := db.Conversations(t.Context(), ConversationFilter{}, Page{Limit: 10})
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	for range 2 {
		if _, err := db.BeginAttachment(t.Context(), page[0].ID, agent.At(time.Now().Add(time.Minute))); err != nil {
			t.Fatal(err)
		}
	}
	_, messages, err := db.Conversation(t.Context(), page[0].ID, 10)
	if err != nil ||
		len(messages) != 1 ||
		messages[0].Content != "My cakes" ||
		len(attachmentsOf(messages[0].Metadata)) != 4 {
		t.Fatalf("messages %+v, %v", messages, err)
	}
	types, _ = eventTypes(t, db, before)
	if n := len(slices.DeleteFunc(types, func(name string) bool { return name != "message.received" })); n != 1 {
		t.Errorf("%d events of the whole album", n)
	}
}
