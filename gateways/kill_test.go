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
const notAnswered = "SELECT data ->> '$.message_id', data ->> '$.reason' FROM logs WHERE message = 'a message was " +
	"not answered automatically'"

// interruptedReason is the logged reason when the server was killed three times
// during an answer.
const interruptedReason = "the server was ended in the middle of it each time"

// serveChild polls Telegram, answers messages and sends the answers, wired as
// in main, until a number of messages are answered or given up, and each answer
// is sent or given up.
func serveChild(path string, messages int) error {
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		return err
	}
	g := New(Options{
		Env:     store.Env{Folder: folder, Allow: loopback, Version: "test", Log: quiet},
		Address: "http://127.0.0.1:8787",
	})
	answerer := NewAnswerer(
		g,
		func(
			_ context.Context,
			_ *store.DB,
			msg agent.Message,
			_ agent.AnswerOptions,
			keep func(agent.Message) error,
		) error {
			return keep(agent.Message{
				ConversationID: msg.ConversationID,
				Role:           agent.MessageAssistant,
				Content:        "Answer to " + msg.Content,
				Metadata:       json.RawMessage("{}"),
			})
		},
	)
	poller := NewPoller(g)
	ctx := context.Background()
	if err := errors.Join(folder.Start(ctx), g.Start(ctx), poller.Start(ctx), answerer.Start(ctx)); err != nil {
		return err
	}
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		r, err := folder.Default().SQL(
			ctx,
			"SELECT count(*) FROM messages WHERE role = 'user' UNION ALL SELECT (SELECT count(*) FROM messages "+
				"WHERE metadata ->> '$.delivery.status' IN ('sent','failed')) + (SELECT count(*) FROM ("+
				notAnswered+"))",
			store.Params{},
			store.Access{},
		)
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
	point  string      // where to kill; empty: never
	spared int         // how often to pass that point before the kill
}

func (k *killer) reached(point string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.server == nil || point != k.point {
		return
	}
	if k.spared--; k.spared < 0 {
		_ = k.server.Kill()
		k.server, k.point = nil, ""
	}
}

// serve runs a server until it has ended. It returns true if the server ended
// on its own. run is called once it is running.
func (k *killer) serve(t *testing.T, path string, messages int, point string, run func()) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = append(os.Environ(), childFolder+"="+path, fmt.Sprintf("%s=%d", childMessages, messages))
	child.Stdout, child.Stderr = os.Stderr, os.Stderr
	k.mu.Lock()
	err := child.Start()
	k.server, k.point, k.spared = child.Process, point, 0
	if strings.HasPrefix(point, "sendMessage") { // all messages may arrive at once, but answers are sent one by one
		k.spared = rand.IntN(12)
	}
	k.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	run()
	err = child.Wait()
	if ctx.Err() != nil {
		t.Fatal("the server did not end within a minute")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.server = nil
	return err == nil
}

// TestKillNine kills a server with SIGKILL repeatedly while messages arrive
// from Telegram and are answered: each is stored once and answered once, and no
// answer is sent twice, even if it is unknown whether it was sent. An answer that
// was interrupted by three kills is given up, which is logged.
func TestKillNine(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and tests a child process")
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
	received := 0
	receiveBatch := func() {
		for range batch {
			bot.receive(int64(40+rand.IntN(8)), fmt.Sprint("message ", received))
			received++
		}
	}
	points := []string{
		"getUpdates done", "getUpdates answered", "sendMessage received", "sendMessage done", "sendMessage answered",
	}
	rand.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	for round := range kills {
		point := points[round%len(points)]
		if k.serve(t, path, messages, point, receiveBatch) {
			t.Fatalf("the server of round %d ended without being killed, after %d messages", round, received)
		}
	}
	if !k.serve(t, path, messages, "", receiveBatch) {
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
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{
		AutoReply:   agent.Some(true),
		LLMProvider: agent.Some("ollama"),
	}); err != nil {
		t.Fatal(err)
	}
	g := New(Options{
		Env:     store.Env{Folder: folder, Allow: loopback, Version: "test", Log: quiet},
		Address: "http://127.0.0.1:8787",
	})
	defer g.Close()
	made, _, err := g.Create(t.Context(), db, "telegram", agent.GatewayChange{
		Name:   agent.Some("Bot"),
		Config: agent.Some(telegramConfig(bot)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := g.Verify(t.Context(), db, made.ID); err != nil || !v.Success {
		t.Fatalf("got %+v, %v", v, err)
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
	interrupted, err := folder.Default().SQL(t.Context(), notAnswered, store.Params{}, store.Access{})
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]any{}
	for _, row := range interrupted.Rows {
		reasons[fmt.Sprint(row[0])] = row[1]
	}
	stored, answered := map[string]int{}, map[string]string{}
	for _, c := range list {
		_, lines, err := folder.Default().Conversation(t.Context(), c.ID, 2*messages)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lines {
			if m.Role == agent.MessageUser {
				stored[m.Content]++
				if reasons[fmt.Sprint(m.ID)] == interruptedReason {
					answered["Answer to "+m.Content] = "interrupted"
				}
				continue
			}
			var about struct{ Delivery struct{ Status string } }
			if err := json.Unmarshal(m.Metadata, &about); err != nil || answered[m.Content] != "" {
				t.Errorf("%q is stored twice, or its metadata is invalid: %v", m.Content, err)
			}
			answered[m.Content] = about.Delivery.Status
		}
	}
	unknown, lost := 0, 0
	for n := range messages {
		text := fmt.Sprint("message ", n)
		answer := "Answer to " + text
		if stored[text] != 1 ||
			got[answer] > 1 ||
			answered[answer] == "sent" && got[answer] != 1 ||
			answered[answer] == "interrupted" && (got[answer] != 0 || kills < 3) {
			t.Errorf(
				"%s is stored %d times, its answer is %q and was sent %d times",
				text,
				stored[text],
				answered[answer],
				got[answer],
			)
		}
		if answered[answer] == "failed" {
			unknown++
			lost += 1 - got[answer]
		}
	}
	t.Logf(
		"%d kills, %d messages, %d answers sent, %d interrupted; %d with an unknown outcome, of which %d were not sent",
		kills,
		messages,
		len(sent),
		len(reasons),
		unknown,
		lost,
	)
	if len(stored) != messages ||
		len(answered) != messages ||
		unknown > kills*sendsPerAgent ||
		len(reasons) > kills/3*answersPerAgent ||
		left > pollLimit {
		t.Errorf(
			"%d messages stored, %d answered, %d given up, %d not fetched",
			len(stored),
			len(answered),
			unknown,
			left,
		)
	}
}
