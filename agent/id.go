package agent

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
	"sync"
	"time"
)

// Kinds of identifiers.
const (
	KindAgent        = "agent"
	KindAdmin        = "admin"
	KindSource       = "source"
	KindChunk        = "chunk"
	KindContact      = "contact"
	KindConversation = "conversation"
	KindReply        = "reply" // a canned reply
	KindKey          = "key"
	KindEvent        = "event"
	KindLog          = "log"
	KindWebhook      = "webhook"
	KindDelivery     = "delivery"
	KindGateway      = "gateway"
	KindSchedule     = "schedule"
	KindRun          = "run"
	KindTask         = "task"
	KindWorkflow     = "workflow"
	KindExecution    = "execution"
	KindTool         = "tool"
	KindMCP          = "mcp"
	KindSession      = "session"
	KindDownload     = "download"
	KindPage         = "page" // a tab of a session
	KindTakeover     = "takeover"
	KindRow          = "row" // of a table
	KindCredential   = "credential"
	KindAPI          = "api"
	KindBrowse       = "browse" // a goal that a model pursues in a session
)

// DefaultID is the id of the built-in agent.
const DefaultID = "default"

var idEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// ids holds the last token, so that ids created within one millisecond still
// sort.
var ids struct {
	sync.Mutex
	ms   int64
	tail uint64
}

// NewID returns an identifier "<kind>-<token>". The token has 20 lower-case
// base32 characters (RFC 4648 extended hex): 48 bits of Unix milliseconds, then
// 52 bits that start at random each millisecond and increase within it, so the
// tokens of one process sort by creation time.
func NewID(kind string) string {
	ms, tail := nextToken(time.Now().UnixMilli())
	return newID(kind, ms, tail)
}

// IsID reports whether a text has the form of an identifier of a kind.
func IsID(kind, text string) bool {
	token, ok := strings.CutPrefix(text, kind+"-")
	return ok && len(token) == 20 && strings.Trim(token, "0123456789abcdefghijklmnopqrstuv") == ""
}

// FirstID returns the smallest identifier that can be created at t, for finding
// records from t on by id.
func FirstID(kind string, t time.Time) string {
	return newID(kind, t.UnixMilli(), 0)
}

func newID(kind string, ms int64, tail uint64) string {
	var raw [13]byte // 104 bits, the last 4 unused
	for i := range 6 {
		raw[i] = byte(ms >> (40 - 8*i))
	}
	tail <<= 4
	for i := range 7 {
		raw[6+i] = byte(tail >> (48 - 8*i))
	}
	var out [64]byte
	n := copy(out[:], kind)
	out[n] = '-'
	var enc [21]byte
	idEncoding.Encode(enc[:], raw[:])
	n += 1 + copy(out[n+1:], enc[:20])
	return string(out[:n])
}

func nextToken(now int64) (ms int64, tail uint64) {
	ids.Lock()
	defer ids.Unlock()
	if now <= ids.ms {
		ids.tail += 1 + uint64(randomByte())
		return ids.ms, ids.tail & (1<<52 - 1)
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	ids.ms, ids.tail = now, 0
	for _, c := range b[:6] {
		ids.tail = ids.tail<<8 | uint64(c)
	}
	return ids.ms, ids.tail
}

func randomByte() byte {
	var b [1]byte
	_, _ = rand.Read(b[:])
	return b[0]
}
