package cluster

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"satchel/agent"
)

// stopped is the owner of agents whose commits the database has lost: no server serves
// them until the operator has decided.
const stopped = "stopped"

// restoredBeats is how many heartbeats, one per second, the database must be behind to be
// considered restored from a backup. A promoted standby may lack fewer; then only agents
// with missing commits are stopped.
const restoredBeats = 10

// Reasons why a server does not join its cluster.
var (
	errRestored = errors.New("the cluster's database is in an older state than it was, as after it was restored " +
		"from a backup: nothing is served until \"satchel cluster recover\" and \"satchel cluster resume\"")
	errOther = errors.New("this data folder is of another cluster than the database: if its database was lost, " +
		"bring the agents into the new one with \"satchel cluster recover\" before any server starts; " +
		"otherwise start with an empty --data")
	errRecovering = errors.New(
		"agents are being recovered into the cluster's database: servers start after \"satchel cluster resume\"",
	)
)

var errBehindAgent = agent.Errorf(
	agent.CodeAgentDamaged,
	"the cluster's database has lost changes of this agent: it is stopped until the operator has run \"satchel "+
		"cluster recover\" and \"satchel cluster resume\"",
).Because(errBehind)

// lastSeen is what a server last saw of the database, saved in its folder: it shows whether
// the database has gone back to an older state. ID and Path identify the folder.
type lastSeen struct {
	ID          string `json:"id"`
	Path        string `json:"path"`
	Cluster     string `json:"cluster"`
	Incarnation string `json:"incarnation,omitempty"`
	Session     string `json:"session,omitempty"`
	Beat        int64  `json:"beat,omitempty"`
	Joins       int64  `json:"joins,omitempty"`
	MasterKey   string `json:"master_key,omitempty"` // see keyCheck
}

func lastSeenPath(folder string) string { return filepath.Join(folder, "cluster", "node") }

func readLastSeen(folder string) (p lastSeen) {
	raw, err := os.ReadFile(lastSeenPath(folder))
	if err != nil || json.Unmarshal(raw, &p) != nil {
		return lastSeen{}
	}
	return p
}

// writeLastSeen saves what was seen of the database.
func (c *Cluster) writeLastSeen() {
	c.mu.Lock()
	p := c.lastSeen
	c.mu.Unlock()
	raw, err := json.Marshal(p)
	if path := lastSeenPath(c.Path); err == nil && p.ID != "" {
		if err = os.WriteFile(path+".new", raw, 0o600); err == nil { // a full disk or a kill leaves the old file intact
			err = os.Rename(path+".new", path)
		}
	}
	if err != nil {
		c.Log.Warn("store the state of the cluster", "error", err)
	}
}

// remember loads what this server saw of the database before it was restarted. The error
// is errRestored if the database is older than that.
func (c *Cluster) remember(ctx context.Context) error {
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return err
	}
	p, now := readLastSeen(c.Path), lastSeen{}
	var beat *int64
	err = c.pool.QueryRow(
		ctx,
		"SELECT joins, incarnation, (SELECT beat FROM node WHERE session = $1) FROM cluster",
		p.Session,
	).Scan(&now.Joins, &now.Incarnation, &beat)
	if err != nil {
		return err
	}
	if p.Cluster != "" && p.Cluster != c.id {
		return errOther
	}
	same := p.Cluster == c.id && p.Incarnation == now.Incarnation
	if same && (now.Joins < p.Joins || beat != nil && *beat+restoredBeats < p.Beat) {
		return errRestored
	}
	if p.ID == "" || p.Path != path { // a copied folder counts as another one
		p.ID = rand.Text()
	}
	sum := sha256.Sum256([]byte(p.ID + "\x00" + bootID()))
	c.place = hex.EncodeToString(sum[:])
	if bootID() == "" {
		c.place = rand.Text()
	}
	c.mu.Lock()
	c.lastSeen = lastSeen{
		ID:          p.ID,
		Path:        path,
		Cluster:     c.id,
		Incarnation: now.Incarnation,
		Joins:       now.Joins,
		MasterKey:   keyCheck(c.MasterKeys[0], c.id),
	}
	c.mu.Unlock()
	c.writeLastSeen()
	return nil
}

// starting reports whether this process has not joined yet.
func (c *Cluster) starting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastSeen.Session == ""
}

// isOlder reports whether a poll found the database in an older state than before. If
// not, it records the state.
func (c *Cluster) isOlder(session string, p pollResult) bool {
	var beat int64
	for _, n := range p.nodes {
		if n.Session == session {
			beat = n.beat
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastSeen.Session != session {
		return false
	}
	if p.incarnation == c.lastSeen.Incarnation &&
		(p.joins < c.lastSeen.Joins || beat > 0 && beat+restoredBeats < c.lastSeen.Beat) {
		return true
	}
	c.lastSeen.Joins, c.lastSeen.Incarnation, c.lastSeen.Beat =
		max(c.lastSeen.Joins, p.joins), p.incarnation, max(c.lastSeen.Beat, beat)
	return false
}

// halt makes this server stop serving, and keep its files as they are.
func (c *Cluster) halt() error {
	c.mu.Lock()
	c.restored, c.expired, c.self.Alive = true, true, false
	c.mu.Unlock()
	c.writeLastSeen()
	for _, db := range c.folder.Agents() {
		c.remove(db.ID())
	}
	return errRestored
}

// awaitResume joins the cluster again after the operator has run resume.
func (c *Cluster) awaitResume(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	var joins int64
	var incarnation string
	if err := c.pool.QueryRow(
		bounded,
		"SELECT joins, incarnation FROM cluster",
	).Scan(&joins, &incarnation); err != nil {
		return err
	}
	c.mu.Lock()
	same := incarnation == c.lastSeen.Incarnation
	if !same {
		c.restored, c.lastSeen.Incarnation, c.lastSeen.Joins, c.lastSeen.Beat = false, incarnation, joins, 0
		c.files = map[string]*copyState{}
	}
	c.mu.Unlock()
	if same {
		return errRestored
	}
	c.writeLastSeen()
	return c.rejoin(ctx)
}

// stopAgent stops an agent whose commits the database has lost: no server serves it any
// more.
func (c *Cluster) stopAgent(id string, reason error) {
	c.Log.Error(
		"an agent is stopped: the cluster's database has less of it than this server",
		"agent", id,
		"error", reason,
	)
	ctx, cancel := context.WithTimeout(context.Background(), statementTime)
	defer cancel()
	_, err := c.pool.Exec(
		ctx,
		"UPDATE agent SET owner = $3, changed = clock_timestamp() WHERE id = $1 AND owner = $2",
		id,
		c.Self().Session,
		stopped,
	)
	if err != nil {
		c.Log.Error("stop an agent", "agent", id, "error", err)
	}
	c.folder.AddStoppedAgent(id, errBehindAgent)
}
