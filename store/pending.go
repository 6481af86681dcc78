package store

import (
	"math/bits"
	"slices"
	"strings"
	"time"

	lib "modernc.org/sqlite/lib"

	"satchel/agent"
)

// Pending has the time when each kind of an agent's background work is due: the
// zero time if there is none, a time in the past if there is some now.
type Pending struct {
	Sources     agent.Time `json:"sources,omitzero"`    // to read, index or purge
	Pages       agent.Time `json:"pages,omitzero"`      // of crawls, to fetch or index
	Events      agent.Time `json:"events,omitzero"`     // that some consumer has not passed yet
	Deliveries  agent.Time `json:"deliveries,omitzero"` // of events to subscriptions
	Messages    agent.Time `json:"messages,omitzero"`   // to send to platforms
	Answers     agent.Time `json:"answers,omitzero"`    // to messages, by the agent itself
	Schedules   agent.Time `json:"schedules,omitzero"`  // and tasks to run
	Runs        agent.Time `json:"runs,omitzero"`       // of both, not ended when the file was last read or closed
	Executions  agent.Time `json:"executions,omitzero"` // to start or continue
	Gateways    agent.Time `json:"gateways,omitzero"`   // that poll their platform
	MCPServers  agent.Time `json:"mcp_servers,omitzero"`
	Sessions    agent.Time `json:"sessions,omitzero"`    // open browser sessions
	Attachments agent.Time `json:"attachments,omitzero"` // of messages, to download

	// Changed reports that the agent's status or settings may have changed, so that
	// work which failed or was paused may continue.
	Changed bool `json:"-"`
}

// workKinds is a set of kinds of work; see dueTimes.
type workKinds uint32

const (
	workSources workKinds = 1 << iota
	workPages
	workEvents
	workDeliveries
	workMessages
	workAnswers
	workSchedules
	workRuns
	workExecutions
	workGateways
	workMCPServers
	workSessions
	workAttachments
	workChanged

	workAll = workChanged<<1 - 1

	// workSubscriptions is not a kind of work: there may be new subscriptions
	// to events.
	workSubscriptions workKinds = workAll + 1

	// workOperations is not a kind of work: operations of APIs may have changed.
	workOperations workKinds = workSubscriptions << 1
)

// dueNow is a time that is in the past on every clock.
var dueNow = agent.At(time.Unix(0, 0))

// dueTimes has, for each kind of work in the order of the constants, its field of
// Pending and the SQL for the time when it is due, in which ?1 is dueNow. It is also
// used before files are migrated: since is the first version that has the tables, 0
// if all have them.
var dueTimes = [...]struct {
	field func(*Pending) *agent.Time
	due   string
	since int
}{
	{
		func(p *Pending) *agent.Time { return &p.Sources },
		`iif(EXISTS (SELECT 1 FROM sources WHERE status NOT IN ('ready','error')) OR EXISTS (SELECT ` +
			`1 FROM _purge), ?1, NULL)`,
		0,
	},
	{
		func(p *Pending) *agent.Time { return &p.Pages },
		`iif(EXISTS (SELECT 1 FROM sources WHERE status NOT IN ('ready','error')), ?1, NULL)`,
		0,
	},
	{
		func(p *Pending) *agent.Time { return &p.Events },
		`iif(EXISTS (SELECT 1 FROM _events WHERE seq > (SELECT min(seq) FROM _cursors)), ?1, NULL)`,
		0,
	},
	{
		func(p *Pending) *agent.Time { return &p.Deliveries },
		`(SELECT min(next_attempt_at) FROM _deliveries WHERE status = 'pending')`,
		0,
	},
	{
		func(p *Pending) *agent.Time { return &p.Messages },
		`(SELECT min(next_attempt_at) FROM _outgoing WHERE status IN ('pending','sending'))`,
		0,
	},
	{func(p *Pending) *agent.Time { return &p.Answers }, `iif(EXISTS (SELECT 1 FROM _answers), ?1, NULL)`, 0},
	{
		func(p *Pending) *agent.Time { return &p.Schedules },
		`iif(EXISTS (SELECT 1 FROM _replan), ?1, (` + selectNextRun + `))`,
		0,
	},
	{
		func(p *Pending) *agent.Time { return &p.Runs },
		`iif(EXISTS (SELECT 1 FROM runs WHERE status = 'running') OR EXISTS (SELECT 1 FROM occurrences ` +
			`WHERE status = 'running'), ?1, NULL)`,
		0,
	},
	{
		func(p *Pending) *agent.Time { return &p.Executions },
		`iif(EXISTS (SELECT 1 FROM executions WHERE status IN ('queued','running') AND suspended = 0), ?1, ` +
			`(SELECT min(due_at) FROM _waits WHERE due_at IS NOT NULL))`,
		0,
	},
	{
		func(p *Pending) *agent.Time { return &p.Gateways },
		`iif(EXISTS (SELECT 1 FROM gateways WHERE ` + isPolling + `), ?1, NULL)`,
		0,
	},
	{func(p *Pending) *agent.Time { return &p.MCPServers }, `iif(EXISTS (SELECT 1 FROM mcp_servers), ?1, NULL)`, 0},
	{
		func(p *Pending) *agent.Time { return &p.Sessions },
		`iif(EXISTS (SELECT 1 FROM sessions WHERE closed_at IS NULL), ?1, NULL)`,
		0,
	},
	{
		func(p *Pending) *agent.Time { return &p.Attachments },
		`(SELECT min(next_attempt_at) FROM _attachments WHERE upload = '')`,
		6,
	},
}

// field returns the due time of one kind of work; nil for workChanged.
func (p *Pending) field(kind workKinds) *agent.Time {
	if kind == workChanged {
		return nil
	}
	return dueTimes[bits.TrailingZeros32(uint32(kind))].field(p)
}

// Earliest returns when the first work is due; the zero time if there is none.
func (p Pending) Earliest() (due agent.Time) {
	for i := range dueTimes {
		if at := *dueTimes[i].field(&p); !at.IsZero() && (due.IsZero() || at.Before(due.Time)) {
			due = at
		}
	}
	return due
}

// add makes work of the given kinds due now.
func (p *Pending) add(kinds workKinds) {
	for ; kinds != 0; kinds &= kinds - 1 {
		kind := kinds & -kinds
		if due := p.field(kind); due != nil {
			*due = dueNow
		} else {
			p.Changed = true
		}
	}
}

// tableChange is a kind of change to a table: to a column of its rows or, without a
// column, any change to its rows.
type tableChange struct{ table, column string }

// tableWork maps changes to tables to the work that they cause.
var tableWork = map[tableChange]workKinds{
	{"sources", ""}:                   workSources,
	{"_purge", ""}:                    workSources,
	{"_pages", ""}:                    workPages,
	{"_events", ""}:                   workEvents,
	{"_deliveries", ""}:               workDeliveries,
	{"webhooks", "active"}:            workDeliveries,
	{"webhooks", "url"}:               workDeliveries,
	{"_outgoing", ""}:                 workMessages,
	{"_answers", ""}:                  workAnswers,
	{"schedules", ""}:                 workSchedules,
	{"tasks", ""}:                     workSchedules,
	{"_replan", ""}:                   workSchedules,
	{"executions", ""}:                workExecutions,
	{"_waits", ""}:                    workExecutions,
	{"gateways", "status"}:            workMessages | workAnswers | workGateways,
	{"gateways", "configured_fields"}: workMessages | workAnswers | workGateways | workAttachments,
	{"gateways", "webhook_base"}:      workGateways,
	{"mcp_servers", ""}:               workMCPServers,
	{"sessions", ""}:                  workSessions,
	{"_attachments", ""}:              workAttachments,
	{"_apis", ""}:                     workOperations,
	{"_api_operations", ""}:           workOperations,
	{"_agent", "status"}:              workAll,
	{"_agent", "settings"}:            workAll,
}

// subscriptionTables contain the subscribers to events: a new or changed row may be
// a new subscriber.
var subscriptionTables = map[string]workKinds{
	"webhooks":  workSubscriptions,
	"_triggers": workSubscriptions,
	"_waits":    workSubscriptions,
}

// columnsWatched are the tables for which tableWork names columns.
var columnsWatched = func() map[string]workKinds {
	kinds := map[string]workKinds{}
	for change, work := range tableWork {
		if change.column != "" {
			kinds[change.table] |= work
		}
	}
	return kinds
}()

// workOfTables returns the work that changes to tables may cause.
func workOfTables(tables map[string]bool) (kinds workKinds) {
	for table := range tables {
		kinds |= tableWork[tableChange{table, ""}] | columnsWatched[table] | subscriptionTables[table]
	}
	return kinds
}

// watchTables makes a connection record, when it compiles a statement, which kinds
// of work the statement can cause, including through triggers and foreign keys,
// which SQLite compiles into it. So a commit does not have to look up what it
// changed. The file, which must have the current version, gets the parts of the
// schema that the statement needs.
// parts of the schema that the statement needs.
func (c *conn) watchTables() error {
	c.sql.Refused = c.createMissing
	c.sql.OnRollback(c.forgetParts)
	return c.sql.Authorize(func(action int32, table, column, _, _ string) bool {
		switch action {
		case lib.SQLITE_INSERT:
			c.noteInsert(table)
			c.sql.Compiling |= uint32(
				tableWork[tableChange{table, ""}] | columnsWatched[table] | subscriptionTables[table],
			)
		case lib.SQLITE_DELETE:
			c.sql.Compiling |= uint32(tableWork[tableChange{table, ""}] | columnsWatched[table])
		case lib.SQLITE_UPDATE:
			c.sql.Compiling |= uint32(
				tableWork[tableChange{table, ""}] | tableWork[tableChange{table, column}] | subscriptionTables[table],
			)
		default:
			return true
		}
		return c.mayWrite(table)
	})
}

// claimWork keeps work that the transaction causes from being announced, because the
// caller does it itself.
func (tx *Tx) claimWork(kinds workKinds) { tx.claimed |= kinds }

// newWork is work that a commit may have caused.
type newWork struct {
	announced workKinds
	claimed   workKinds // done by the writers themselves, see Tx.claimWork
}

// collectWork returns the work that statements have caused since the last call.
func (c *conn) collectWork() newWork {
	touched := workKinds(c.sql.Used)
	made := newWork{touched &^ c.claimed, touched & c.claimed}
	c.sql.Used, c.claimed = 0, 0
	return made
}

// subscribers are notified of work.
type subscribers = []func(*DB, Pending)

// OnPending adds a subscriber that is notified of agents' work: at once of what is
// already pending, then of agents that appear and of each commit that may have
// caused work, and of all kinds, with Changed, when an agent's status or settings
// have changed, or it was deleted or its file removed (DB.Gone). A due time is a
// hint: the subscriber reads from the file what there is to do. It is called often,
// by several goroutines at once, and must return immediately without using the
// agent's file.
func (folder *Folder) OnPending(subscriber func(*DB, Pending)) {
	for {
		old := folder.subscribers.Load()
		var all subscribers
		if old != nil {
			all = slices.Clone(*old)
		}
		all = append(all, subscriber)
		if folder.subscribers.CompareAndSwap(old, &all) {
			break
		}
	}
	for _, db := range folder.Agents() {
		if p := db.Pending(); p != (Pending{}) && db.Problem() == nil {
			subscriber(db, p)
		}
	}
}

// publish passes on what is pending.
func (db *DB) publish(p Pending) {
	if all := db.folder.subscribers.Load(); all != nil && p != (Pending{}) {
		for _, subscriber := range *all {
			subscriber(db, p)
		}
	}
}

// notify announces that a commit may have caused work, except what the writers do
// themselves.
func (db *DB) notify(made, taken workKinds) {
	if made|taken == 0 {
		return
	}
	if (made|taken)&workSources != 0 {
		db.sourceChanges.send()
	}
	db.recent.Or(uint32(made | taken))
	var p Pending
	p.add(made)
	db.publish(p)
}

// Pending returns the work that is due in the agent's file: as of when the file was
// last read or closed and, while it is open, with anything that may have been added
// since. It does not access the file.
func (db *DB) Pending() Pending {
	p := db.record.Load().pending
	p.add(workKinds(db.recent.Load()) &^ workChanged)
	return p
}

// Gone reports whether the agent was deleted, or its file removed or replaced. Then
// it has no more work.
func (db *DB) Gone() bool { return db.closed.Load() }

// Suspended reports whether the agent's background work is on hold until its status
// or its file changes.
func (db *DB) Suspended() bool {
	return db.Gone() || db.Problem() != nil || db.Agent().Status == agent.StatusDisabled
}

// selectNextRun selects when the next schedule or task is due.
const selectNextRun = `SELECT min(t) FROM (
		SELECT min(next_run) AS t FROM schedules WHERE status = 'active' AND next_run IS NOT NULL
		UNION ALL SELECT min(next_run) FROM tasks WHERE next_run IS NOT NULL)`

// selectPending returns the query for dueTimes in a file of this version.
func selectPending(version int) string {
	columns := make([]string, len(dueTimes))
	for i := range dueTimes {
		if columns[i] = dueTimes[i].due; version < dueTimes[i].since {
			columns[i] = "NULL"
		}
	}
	query := "SELECT " + strings.Join(columns, ", ")
	if version < 3 {
		query = strings.Replace(query, "suspended = 0", "asleep = 0", 1)
	}
	return query
}

// pending reads the work that is due in a file of any version.
func (c *conn) pending() (p Pending, err error) {
	var version int
	if err := c.value(&version, "PRAGMA user_version"); err != nil {
		return p, err
	}
	fields := make([]any, len(dueTimes))
	for i := range dueTimes {
		fields[i] = dueTimes[i].field(&p)
	}
	err = c.row(selectPending(version), dueNow).Scan(fields...)
	return p, err
}
