package store

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"satchel/agent"
)

// killRounds is the variable that sets how often the writer is killed:
//
//	SATCHEL_KILL_ROUNDS=20 go test ./store -run TestKillNine -v
//	SATCHEL_KILL_ROUNDS=20 go test ./store -run TestKillNine -v
const killRounds = "SATCHEL_KILL_ROUNDS"

func init() { children["writer"] = writeUntilKilled }

// writers is how many goroutines write to each of the three agents.
const (
	killedAgents = 3
	writers      = 3
)

// writeUntilKilled makes writes of several kinds and prints a line for each that was
// acknowledged: its kind, the agent, and what to look for.
func writeUntilKilled() {
	f, err := Open(Options{Path: os.Getenv("WRITE_FOLDER"), Log: slog.New(slog.DiscardHandler), OpenFiles: 2})
	if err != nil {
		panic(err)
	}
	ctx := WithActor(context.Background(), "ada@example.com")
	if err := f.Start(ctx); err != nil {
		panic(err)
	}
	var printing sync.Mutex
	report := func(line string, args ...any) {
		printing.Lock()
		defer printing.Unlock()
		fmt.Printf(line+"\n", args...)
	}
	var writing sync.WaitGroup
	for n := range killedAgents {
		db, err := f.Agent(fmt.Sprintf("a%d", n))
		if err != nil {
			panic(err)
		}
		for w := range writers {
			writing.Go(func() { writeFor(ctx, db, w, report) })
		}
	}
	writing.Wait()
}

func writeFor(ctx context.Context, db *DB, w int, report func(string, ...any)) {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	for n := 0; ; n++ {
		c, err := db.CreateContact(ctx, agent.ContactChange{
			Name:       agent.Some("x"),
			ExternalID: agent.Some(agent.NewID("x")),
			Tags:       agent.Some([]string{"t"}),
		})
		must(err)
		report("contact %s %s", db.id, c.ID)
		switch (n + w) % 5 {
		case 0:
			_, err := db.UpdateContact(ctx, c.ID, agent.ContactChange{Notes: agent.Some("changed")})
			must(err)
			report("changed %s %s", db.id, c.ID)
		case 1:
			must(db.DeleteContact(ctx, c.ID))
			report("deleted %s %s", db.id, c.ID)
		case 2:
			conversation, err := db.CreateConversation(ctx, agent.ConversationChange{ContactID: agent.Some(c.ID)})
			must(err)
			m, err := db.AppendMessage(ctx, agent.Message{
				ConversationID: conversation.ID,
				Role:           agent.MessageUser,
				Content:        strings.Repeat("hello ", 200),
			})
			must(err)
			report("message %s %d", db.id, m.ID)
		case 3:
			if w != 0 {
				continue // one writer, so that later settings have later ids
			}
			_, err := db.UpdateSettings(ctx, agent.SettingsChange{
				LLMModel: agent.Some(c.ID),
				LLMKey:   agent.Some("sk-" + c.ID),
			})
			must(err)
			report("settings %s %s", db.id, c.ID)
		case 4:
			u, err := db.ReceiveFile(
				ctx,
				"f.txt",
				"text/plain",
				bytes.NewReader(bytes.Repeat([]byte("x"), 300<<10)),
				1<<20,
			)
			must(err)
			s, err := db.CreateFileSource(ctx, "f.txt", agent.DefaultChunking, u)
			must(err)
			report("source %s %s", db.id, s.ID)
		}
	}
}

// checks are the queries, by kind of line, that find what was acknowledged. A contact may
// have been deleted by a commit whose line was not printed before the kill.
var checks = map[string]string{
	"contact": `SELECT (SELECT count(*) FROM _events WHERE type = 'contact.created' AND json_extract(data, '$.contact.id') = ?1) = 1
		AND (SELECT count(*) FROM contacts WHERE id = ?1) + (SELECT count(*) FROM _events WHERE type = 'contact.deleted' AND json_extract(data, '$.contact.id') = ?1) = 1`,
	"changed":  "SELECT count(*) FROM contacts WHERE id = ? AND notes = 'changed'",
	"deleted":  "SELECT NOT EXISTS (SELECT 1 FROM contacts WHERE id = ?)",
	"message":  "SELECT count(*) FROM messages WHERE id = ?",
	"settings": "SELECT json_extract(settings, '$.llm_model') >= ? FROM _agent",
	"source": "SELECT sum(length(data)) = 300*1024 FROM sources s JOIN _files f ON f.source_id = s.id " +
		"JOIN _file_parts USING (upload) WHERE s.id = ?",
}

// TestKillNine kills a writing server at random moments and checks that everything it
// acknowledged is there.
func TestKillNine(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	rounds := 4
	if n, err := strconv.Atoi(os.Getenv(killRounds)); err == nil {
		rounds = n
	}
	folder := t.TempDir()
	f := openAt(t, folder)
	for n := range killedAgents {
		createAgent(t, f, fmt.Sprintf("a%d", n))
	}
	closeFolder(t, f)
	total := 0
	for round := range rounds {
		lines := killWriter(t, folder, 1+rand.IntN(600))
		total += len(lines)
		left := fileCount(t, folder+"/agents/*-wal")
		f := openAt(t, folder)
		checkAcknowledged(t, f, lines)
		for _, db := range f.Agents() {
			checkSound(t, db)
		}
		closeFolder(t, f)
		t.Logf("round %d: %d writes acknowledged, %d -wal files left", round, len(lines), left)
	}
	if n := fileCount(t, folder+"/agents/*"); n != killedAgents+1 || fileCount(t, folder+"/tmp/*") != 0 {
		t.Errorf("%d files in agents, %d in tmp", n, fileCount(t, folder+"/tmp/*"))
	}
	t.Logf("%d writes were acknowledged in %d rounds", total, rounds)
}

// killWriter starts the writer, kills it after so many lines, and returns the lines that
// were printed completely.
func killWriter(t *testing.T, folder string, after int) (lines []string) {
	t.Helper()
	cmd := child(t, "writer", "WRITE_FOLDER="+folder)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for printed := bufio.NewReader(out); ; {
		line, err := printed.ReadString('\n')
		if err != nil {
			break // a line without a newline was not printed completely
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
		if len(lines) == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	if len(lines) < after {
		t.Fatalf("the writer exited after %d lines", len(lines))
	}
	return lines
}

func checkAcknowledged(t *testing.T, f *Folder, lines []string) {
	t.Helper()
	for _, line := range lines {
		word := strings.Fields(line)
		if !value[bool](t, byName(t, f, word[1]), checks[word[0]], word[2]) {
			t.Errorf("lost: %s", line)
		}
	}
}

// checkSound checks what must hold in any agent's file.
func checkSound(t *testing.T, db *DB) {
	t.Helper()
	if verdict := value[string](t, db, "PRAGMA integrity_check"); verdict != "ok" {
		t.Errorf("%s: %s", db.id, verdict)
	}
	// made with the first chunk
	if value[int](t, db, "SELECT count(*) FROM sqlite_schema WHERE name = '_chunk_text'") > 0 {
		do(t, db, "INSERT INTO _chunk_text(_chunk_text) VALUES ('integrity-check')")
	}
	for what, query := range map[string]string{
		"rows without what they refer to": "SELECT count(*) FROM pragma_foreign_key_check",
		"contacts counted": "SELECT n - (SELECT count(*) FROM contacts) " +
			"FROM _counts WHERE name = 'contacts'",
		"messages counted": "SELECT n - (SELECT count(*) FROM messages) " +
			"FROM _counts WHERE name = 'messages'",
		"log rows counted": "SELECT n - (SELECT count(*) FROM logs) FROM _counts WHERE name = 'logs'",
		"vectors without their record": "SELECT (SELECT coalesce(sum(n), 0) FROM _vector_segments) - (SELECT n " +
			"FROM _counts WHERE name = 'vectors_gone') - (SELECT count(*) FROM chunks WHERE embedded)",
		"contacts without their tag": "SELECT count(*) FROM contacts WHERE id NOT IN (SELECT " +
			"contact_id FROM _contact_tags)",
		"tags without their contact": "SELECT count(*) FROM _contact_tags WHERE contact_id NOT IN " +
			"(SELECT id FROM contacts)",
		"events without an audit row": "SELECT (SELECT count(*) FROM _events WHERE type LIKE 'contact.%') - " +
			"(SELECT count(*) FROM logs WHERE message LIKE 'contact %')",
		"settings without an audit row": "SELECT (SELECT count(*) FROM _agent WHERE settings <> '{}') > (SELECT " +
			"count(*) FROM logs WHERE message = 'settings updated')",
	} {
		if n := value[int](t, db, query); n != 0 {
			t.Errorf("%s: %s: %d", db.id, what, n)
		}
	}
}
