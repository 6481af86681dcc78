package store

import (
	"context"
	"fmt"
	"strings"

	lib "modernc.org/sqlite/lib"

	"satchel/agent"
)

// Kinds of changes besides those of records, whose kinds are those of their ids.
const (
	KindMessage  = "message"
	KindTable    = "table" // a user's own table, or its rows; the id is its name
	KindSetting  = "setting"
	KindWaiting  = "waiting"  // something started or stopped waiting for a person; no id
	KindProgress = "progress" // work on sources progressed; no id
	KindReset    = "reset"    // more changed than is reported row by row
)

// Op is what happened to a record.
type Op string

// The operations on a record.
const (
	OpCreate Op = "create"
	OpUpdate Op = "update"
	OpDelete Op = "delete"
)

// Change is a change to a record made by a commit.
type Change struct {
	Kind   string
	ID     string
	Op     Op
	Parent string // the conversation of a message, the schedule of a run
}

// rowTable specifies the records that the rows of a table represent. Columns
// are counted from 0; a kind without an id has -1.
type rowTable struct {
	kind       string
	id, parent int
	partOf     bool // any change to a row is an update of the record
}

// rowTables are the tables whose changes are published.
var rowTables = map[string]rowTable{
	"_agent":          {kind: agent.KindAgent},
	"sources":         {kind: agent.KindSource, id: 1},
	"contacts":        {kind: agent.KindContact},
	"conversations":   {kind: agent.KindConversation},
	"messages":        {kind: KindMessage, parent: 1},
	"workflows":       {kind: agent.KindWorkflow},
	"executions":      {kind: agent.KindExecution},
	"schedules":       {kind: agent.KindSchedule},
	"runs":            {kind: agent.KindRun, id: 1, parent: 2},
	"tasks":           {kind: agent.KindTask},
	"occurrences":     {kind: agent.KindTask, id: 2, partOf: true},
	"tools":           {kind: agent.KindTool},
	"mcp_servers":     {kind: agent.KindMCP},
	"gateways":        {kind: agent.KindGateway},
	"_credentials":    {kind: agent.KindCredential},
	"_apis":           {kind: agent.KindAPI},
	"webhooks":        {kind: agent.KindWebhook},
	"_deliveries":     {kind: agent.KindDelivery},
	"sessions":        {kind: agent.KindSession},
	"session_actions": {kind: agent.KindSession, id: 1, partOf: true},
	"_browses":        {kind: agent.KindSession, id: 1, partOf: true},
	"takeovers":       {kind: agent.KindTakeover},
	"_waits":          {kind: KindWaiting, id: -1},
	"chunks":          {kind: KindProgress, id: -1},
	"_pages":          {kind: KindProgress, id: -1},
	"_records":        {kind: KindProgress, id: -1},
}

// maxRows limits how many changes of one commit are listed individually.
const maxRows = 1_000

// Watch calls fn after each commit with the records that it changed, until stop is
// called, which does not wait. There can be only one watcher at a time. fn is called
// by the writing goroutine, in the order of the commits, and must return quickly
// without using the agent's file. Changes are only recorded while there is a
// watcher.
func (db *DB) Watch(ctx context.Context, fn func([]Change)) (stop func(), err error) {
	if !db.watcher.CompareAndSwap(nil, &fn) {
		return nil, fmt.Errorf("agent %s is watched already", db.id)
	}
	stop = func() {
		if db.watcher.CompareAndSwap(&fn, nil) {
			go func() { _ = db.ifOpen(db.unwatchRows) }()
		}
	}
	if err := db.alone(ctx, func(c *conn) error {
		c.watchRows(true)
		return nil
	}); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// unwatchRows stops the recording of rows, unless there is a new watcher.
func (db *DB) unwatchRows(f *file) error {
	return f.submit(&job{
		ctx:   context.Background(),
		alone: true,
		run: func(c *conn) error {
			c.watchRows(db.watcher.Load() != nil)
			return nil
		},
	})
}

// ifOpen runs fn with the file if it is open.
func (db *DB) ifOpen(fn func(*file) error) error {
	db.mu.Lock()
	f := db.file
	if f != nil {
		db.users++
	}
	db.mu.Unlock()
	if f == nil {
		return nil
	}
	defer db.leave()
	return fn(f)
}

// changed passes on the changes of a commit.
func (db *DB) changed(rows []Change) {
	if fn := db.watcher.Load(); fn != nil {
		(*fn)(rows)
	}
}

// watchRows sets whether the connection records the rows that its statements
// change; see https://www.sqlite.org/c3ref/preupdate_blobwrite.html.
func (c *conn) watchRows(on bool) {
	if on {
		c.sql.OnRow(c.noteRow)
	} else {
		c.sql.OnRow(nil)
	}
}

// noteRow is the RowFunc that notes each changed row.
func (c *conn) noteRow(table string, op int32, column func(i int) any) {
	if name, ok := strings.CutPrefix(table, tablePrefix); ok {
		c.note(Change{Kind: KindTable, ID: name, Op: OpUpdate})
		return
	}
	rowTable, known := rowTables[table]
	if !known || len(c.rows) > maxRows {
		return
	}
	change := Change{Kind: rowTable.kind, Op: OpUpdate}
	switch {
	case rowTable.partOf:
	case op == lib.SQLITE_INSERT:
		change.Op = OpCreate
	case op == lib.SQLITE_DELETE:
		change.Op = OpDelete
	}
	if rowTable.id >= 0 {
		change.ID = fmt.Sprint(column(rowTable.id))
	}
	if rowTable.parent > 0 {
		change.Parent = fmt.Sprint(column(rowTable.parent))
	}
	c.note(change)
}

// note adds a change, merging repeated ones. If there are too many, a single reset
// replaces them.
func (c *conn) note(change Change) {
	if n := len(c.rows); n > maxRows || n > 0 && c.rows[n-1] == change {
		return
	}
	if len(c.rows) == maxRows {
		change = Change{Kind: KindReset}
	}
	c.rows = append(c.rows, change)
}
