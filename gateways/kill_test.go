package gateways

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Environment variables: a test sets the first two to make the test binary a
// server on a data folder, which ends once a number of messages are answered;
// the third sets a higher number of kills than the default.
const (
	childFolder   = "SATCHEL_TEST_FOLDER"
	childMessages = "SATCHEL_TEST_MESSAGES"
	killRounds    = "SATCHEL_KILL_ROUNDS"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childFolder); path != "" {
		messages, err := strconv.Atoi(os.Getenv(childMessages))
		if err == nil {
			err = serveChild(path, messages)
		}
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// notAnswered selects the messages whose answer was given up, and why.
const notAnswered = "SELECT data ->> '$.message_id', data ->> '$.reason' FROM logs WHERE message = 'a message was not answered automatically'"

// cutAnswer is the reason when the end of the server cut an answer three times.
const cutAnswer = "the server was ended in the middle of it each time"

// serveChild polls Telegram, answers messages and sends the answers, wired as
// in main, until a number of messages are answered, or their answer given up, and each
// answer is sent or given up.
func serveChild(path string, messages int) error {
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		return err
	}
	g := New(Options{Env: store.Env{Folder: folder, Allow: loopback, Version: "test", Log: quiet}, Address: "http://127.0.0.1:8787"})
	answerer := NewAnswerer(g, func(_ context.Context, _ *store.DB, said agent.Message, _ agent.AnswerOptions, keep func(agent.Message) error) error {
		return keep(agent.Message{ConversationID: said.ConversationID, Role: agent.MessageAssistant, Content: "Answer to " + said.Content, Metadata: json.RawMessage("{}")})
	})
	poller := NewPoller(g)
	ctx := context.Background()
	if err := errors.Join(folder.Start(ctx), g.Start(ctx), poller.Start(ctx), answerer.Start(ctx)); err != nil {
		return err
	}
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		r, err := folder.Default().SQL(ctx, "SELECT count(*) FROM messages WHERE role = 'user' UNION ALL SELECT (SELECT count(*) FROM messages WHERE metadata ->> '$.delivery.status' IN ('sent','failed')) + (SELECT count(*) FROM ("+notAnswered+"))", store.Params{}, store.Access{})
		if err != nil {
			return err
		}
		if want := fmt.Sprint(messages); fmt.Sprint(r.Rows) == "[["+want+"] ["+want+"]]" {
			break
		}
	}
	answerer.Stop()
	poller.Stop()
	g.Stop()
	folder.Stop()
	return folder.Close()
}

// killer kills the server at a given point of its calls to Telegram.
type killer struct {
	mu     sync.Mutex
	server *os.Process // nil while none runs
	place  string      // where to kill; empty: nowhere
	spared int         // number of times to pass that point before
}

func (k *killer) reached(place string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.server == nil || place != k.place {
		return
	}
	if k.spared--; k.spared < 0 {
		_ = k.server.Kill()
		k.server, k.place = nil, ""
	}
}

// serve runs a server until it has ended. It returns true if the server ended
// on its own. run is called once it is running.
func (k *killer) serve(t *testing.T, path string, messages int, place string, run func()) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = append(os.Environ(), childFolder+"="+path, fmt.Sprintf("%s=%d", childMessages, messages))
	child.Stdout, child.Stderr = os.Stderr, os.Stderr
	k.mu.Lock()
	err := child.Start()
	k.server, k.place, k.spared = child.Process, place, 0
	if strings.HasPrefix(place, "sendMessage") { // all messages may arrive at once, but answers are sent one by one
		k.spared = rand.IntN(12)
	}
	k.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	run()
	err = child.Wait()
	if ctx.Err() != nil {
		t.Fatal("the server did not come to its end within a minute")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.server = nil
	return err == nil
}

// TestKillNine kills a server with SIGKILL repeatedly while messages arrive
// from Telegram and are answered: each is stored once and answered once, and no
// answer is sent twice, even if it is unknown whether it was sent. An answer that three
// kills cut is given up, which the log says.
func TestKillNine(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and what is killed is another process")
	}
	kills := 5
	if n, err := strconv.Atoi(os.Getenv(killRounds)); err == nil {
		kills = n
	}
	const batch = 30 // messages that arrive while a server is running
	messages := batch * (kills + 1)
	bot, k, path := newBotServer(t), &killer{}, t.TempDir()
	bot.onReached = k.reached
	prepareBot(t, path, bot)
	said := 0
	say := func() {
		for range batch {
			bot.receive(int64(40+rand.IntN(8)), fmt.Sprint("message ", said))
			said++
		}
	}
	places := []string{"getUpdates done", "getUpdates answered", "sendMessage asked", "sendMessage done", "sendMessage answered"}
	rand.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	for round := range kills {
		place := places[round%len(places)]
		if k.serve(t, path, messages, place, say) {
			t.Fatalf("the server of round %d ended by itself, with %d messages said", round, said)
		}
	}
	if !k.serve(t, path, messages, "", say) {
		t.Fatal("the last server failed")
	}
	checkAnswers(t, path, bot, messages, kills)
}

// prepareBot creates an agent that answers messages to its Telegram bot.
func prepareBot(t *testing.T, path string, bot *botServer) {
	t.Helper()
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	db := folder.Default()
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{AutoReply: agent.Some(true), LLMProvider: agent.Some("ollama")}); err != nil {
		t.Fatal(err)
	}
	g := New(Options{Env: store.Env{Folder: folder, Allow: loopback, Version: "test", Log: quiet}, Address: "http://127.0.0.1:8787"})
	defer g.Close()
	made, _, err := g.Create(t.Context(), db, "telegram", agent.GatewayChange{Name: agent.Some("Bot"), Config: agent.Some(telegramConfig(bot))})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := g.Verify(t.Context(), db, made.ID); err != nil || !v.Success {
		t.Fatalf("%+v, %v", v, err)
	}
}

// checkAnswers compares the file with what Telegram received.
func checkAnswers(t *testing.T, path string, bot *botServer, messages, kills int) {
	t.Helper()
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	_, sent, left, _ := bot.state()
	got := map[string]int{}
	for _, m := range sent {
		got[m["text"].(string)]++
	}
	list, _, err := folder.Default().Conversations(t.Context(), store.ConversationFilter{}, store.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	cut, err := folder.Default().SQL(t.Context(), notAnswered, store.Params{}, store.Access{})
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]any{}
	for _, row := range cut.Rows {
		reasons[fmt.Sprint(row[0])] = row[1]
	}
	heard, answered := map[string]int{}, map[string]string{}
	for _, c := range list {
		_, lines, err := folder.Default().Conversation(t.Context(), c.ID, 2*messages)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lines {
			if m.Role == agent.MessageUser {
				heard[m.Content]++
				if reasons[fmt.Sprint(m.ID)] == cutAnswer {
					answered["Answer to "+m.Content] = "cut"
				}
				continue
			}
			var about struct{ Delivery struct{ Status string } }
			if err := json.Unmarshal(m.Metadata, &about); err != nil || answered[m.Content] != "" {
				t.Errorf("%q is there twice, or %v", m.Content, err)
			}
			answered[m.Content] = about.Delivery.Status
		}
	}
	doubtful, lost := 0, 0
	for n := range messages {
		text := fmt.Sprint("message ", n)
		answer := "Answer to " + text
		if heard[text] != 1 || got[answer] > 1 || answered[answer] == "sent" && got[answer] != 1 || answered[answer] == "cut" && (got[answer] != 0 || kills < 3) {
			t.Errorf("%s is stored %d times, its answer is %q and was sent %d times", text, heard[text], answered[answer], got[answer])
		}
		if answered[answer] == "failed" {
			doubtful++
			lost += 1 - got[answer]
		}
	}
	t.Logf("%d kills, %d messages, %d answers sent, %d cut; of %d nobody could know whether they were, and %d of these were not", kills, messages, len(sent), len(reasons), doubtful, lost)
	if len(heard) != messages || len(answered) != messages || doubtful > kills*sendsPerAgent || len(reasons) > kills/3*answersPerAgent || left > pollLimit {
		t.Errorf("%d heard, %d answered, %d given up, %d not fetched", len(heard), len(answered), doubtful, left)
	}
}
