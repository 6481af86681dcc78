package mcp

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"satchel/agent"
)

// Limits of programs.
const (
	maxPrograms   = 20
	idleProgram   = 10 * time.Minute // a program that was not used this long is ended
	startTimeout  = 2 * time.Minute  // until it speaks MCP; it may have to be downloaded first
	endGrace      = 5 * time.Second  // between closing its input, SIGTERM and killing it
	minRestart    = time.Second
	maxRestart    = 5 * time.Minute
	stableAfter   = time.Minute     // a program that ran this long is restarted as if for the first time
	sweepEvery    = 2 * time.Second // how often memory is measured
	programMemory = 1 << 30         // bytes of resident memory, of the program and what it starts
	maxStderr     = 64 << 10        // bytes: the last ones
)

// ProgramOptions configure Programs.
type ProgramOptions struct {
	Commands    map[string]Command // of the operator; none: no programs
	Folder      string             // for the home folders of programs
	Environment []string           // of this process; a few harmless variables are passed on
}

// Program is a server that is started with one of the operator's commands.
type Program struct {
	Agent, Server string // ids: each pair has its own process
	Command       string // name of one of the operator's commands
	Env           map[string]string
}

// Programs runs servers that use standard input and output. They have the rights of
// this process and are not subject to its rules for outbound requests. It is safe
// for concurrent use.
type Programs struct {
	options ProgramOptions
	sdk     *sdk.Client
	limits  programLimits

	mu      sync.Mutex
	life    context.Context // nil: not started
	stop    context.CancelFunc
	starts  chan func() // run by the thread that the programs live with
	stopped chan struct{}
	running map[programKey]*process
	failed  map[programKey]failure
	ends    sync.WaitGroup // programs that are being ended
}

// programLimits are the limits above, for tests.
type programLimits struct {
	idle, grace, restart, sweep time.Duration
	memory                      uint64
	now                         func() time.Time
}

type programKey struct{ agent, server string }

// failure describes an unexpected end of a program.
type failure struct {
	times int
	until time.Time // it is not started before
	why   *Fault
}

// NewPrograms returns Programs that run nothing until Start.
func NewPrograms(o ProgramOptions) *Programs {
	return &Programs{
		options: o,
		running: map[programKey]*process{},
		failed:  map[programKey]failure{},
		limits: programLimits{
			idle:    idleProgram,
			grace:   endGrace,
			restart: minRestart,
			sweep:   sweepEvery,
			memory:  programMemory,
			now:     time.Now,
		},
	}
}

// OpenPrograms returns Programs with the commands of the operator's file, none if
// file is "".
func OpenPrograms(file string, o ProgramOptions) (_ *Programs, err error) {
	if file != "" {
		o.Commands, err = readCommands(file)
	}
	return NewPrograms(o), err
}

// Has reports whether the operator has a command of this name.
func (ps *Programs) Has(command string) bool {
	_, ok := ps.options.Commands[command]
	return ok
}

// Names returns the names of the operator's commands, sorted.
func (ps *Programs) Names() []string {
	return slices.AppendSeq([]string{}, slices.Values(slices.Sorted(maps.Keys(ps.options.Commands))))
}

// Start lets programs be started. It may be called twice.
func (ps *Programs) Start(ctx context.Context) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.life != nil || len(ps.options.Commands) == 0 {
		return
	}
	ps.life, ps.stop = context.WithCancel(ctx)
	ps.starts, ps.stopped = make(chan func()), make(chan struct{})
	go ps.runStarter(ps.life, ps.starts, ps.stopped)
}

// runStarter starts every program from one thread that outlives them: on Linux they die
// with it.
func (ps *Programs) runStarter(life context.Context, starts chan func(), stopped chan struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(stopped)
	tick := time.NewTicker(ps.limits.sweep)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			ps.endAll()
			return
		case start := <-starts:
			start()
		case <-tick.C:
			ps.sweep()
		}
	}
}

// Stop ends all programs and waits for them.
func (ps *Programs) Stop() {
	ps.mu.Lock()
	stop, stopped := ps.stop, ps.stopped
	ps.life, ps.stop = nil, nil
	ps.mu.Unlock()
	if stop != nil {
		stop()
		<-stopped
	}
}

func (ps *Programs) endAll() {
	ps.mu.Lock()
	all := slices.Collect(maps.Values(ps.running))
	ps.mu.Unlock()
	for _, p := range all {
		ps.endInBackground(p)
	}
	ps.ends.Wait()
}

// endInBackground ends a program that did not fail, in the background.
func (ps *Programs) endInBackground(p *process) {
	ps.ends.Go(func() {
		p.end(ps.limits.grace, "it was ended", false)
	})
}

// sweep ends programs that are idle or use too much memory.
func (ps *Programs) sweep() {
	ps.mu.Lock()
	now := ps.limits.now()
	for key, p := range ps.running {
		if p.users == 0 && now.Sub(p.used) >= ps.limits.idle {
			delete(ps.running, key)
			ps.endInBackground(p)
		}
	}
	all := slices.Collect(maps.Values(ps.running))
	for key, f := range ps.failed {
		if now.Sub(f.until) > time.Hour {
			delete(ps.failed, key)
		}
	}
	ps.mu.Unlock()
	for _, p := range all {
		if p.memory() > ps.limits.memory {
			ps.ends.Go(func() {
				p.end(0, fmt.Sprintf("it used more than %d MB of memory", ps.limits.memory>>20), true)
			})
		}
	}
}

// Forget ends the program of a server that was deleted, and deletes its folder.
func (ps *Programs) Forget(agentID, server string) {
	ps.mu.Lock()
	p := ps.running[programKey{agentID, server}]
	delete(ps.failed, programKey{agentID, server})
	ps.mu.Unlock()
	folder := ps.programFolder(Program{Agent: agentID, Server: server})
	if p == nil {
		_ = os.RemoveAll(folder)
		return
	}
	ps.ends.Go(func() {
		p.end(ps.limits.grace, "its server was deleted", false)
		_ = os.RemoveAll(folder)
	})
}

func (ps *Programs) programFolder(p Program) string {
	return filepath.Join(ps.options.Folder, p.Agent, p.Server)
}

// use returns the running process of a program, starting it if necessary. The caller
// must release it. Errors are a *Fault or the context's.
func (ps *Programs) use(ctx context.Context, program Program) (*process, error) {
	run, begin, err := ps.find(program)
	if err != nil {
		return nil, err
	}
	if begin {
		go run.begin(program)
	}
	select {
	case <-run.ready:
	case <-ctx.Done():
		run.release()
		if ctx.Err() == context.Canceled {
			return nil, ctx.Err()
		}
		return nil, fault(true, nil, "the MCP server is still starting")
	}
	if run.err != nil {
		run.release()
		return nil, run.err
	}
	return run, nil
}

// find returns the process of a program and marks it as in use. begin reports that
// the caller must start it.
func (ps *Programs) find(program Program) (run *process, begin bool, err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if !ps.Has(program.Command) {
		return nil, false, fault(
			true,
			nil,
			"the operator's file has no command %q, see --allow-stdio-mcp",
			agent.Clip(program.Command, 100),
		)
	}
	if ps.life == nil {
		return nil, false, fault(true, nil, "programs are not started now")
	}
	key, same := programKey{program.Agent, program.Server}, ps.fingerprint(program)
	if run = ps.running[key]; run != nil && run.fingerprint == same {
		run.users++
		return run, false, nil
	}
	if f := ps.failed[key]; ps.limits.now().Before(f.until) {
		return nil, false, f.why
	}
	if run != nil { // its command or its environment is another now
		ps.endInBackground(run)
	} else if len(ps.running) >= maxPrograms && !ps.evictLocked() {
		return nil, false, fault(true, nil, "%d MCP servers run as programs already", maxPrograms)
	}
	run = &process{
		programs:    ps,
		key:         key,
		fingerprint: same,
		users:       1,
		ready:       make(chan struct{}),
		ended:       make(chan struct{}),
		startedAt:   ps.limits.now(),
		secrets:     slices.Collect(maps.Values(program.Env)),
	}
	ps.running[key] = run
	return run, true, nil
}

// evictLocked ends the least recently used program. It returns false if all are in
// use.
func (ps *Programs) evictLocked() bool {
	var oldest *process
	for _, p := range ps.running {
		if p.users == 0 && (oldest == nil || p.used.Before(oldest.used)) {
			oldest = p
		}
	}
	if oldest == nil {
		return false
	}
	delete(ps.running, oldest.key)
	ps.endInBackground(oldest)
	return true
}

// fingerprint returns a hash of what a program is started with.
func (ps *Programs) fingerprint(p Program) [sha256.Size]byte {
	c := ps.options.Commands[p.Command]
	parts := []string{p.Command, c.Command, strings.Join(c.Args, "\x00")}
	for _, env := range []map[string]string{c.Env, p.Env} {
		for _, name := range slices.Sorted(maps.Keys(env)) {
			parts = append(parts, name, env[name])
		}
	}
	return sha256.Sum256([]byte(strings.Join(parts, "\x00")))
}

// passedVariables are the variables of this process that are passed to programs.
var passedVariables = []string{
	"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "WINDIR",
}

// environment returns the environment of a program.
func (ps *Programs) environment(p Program, home, temp string) []string {
	var env []string
	for _, line := range ps.options.Environment {
		if name, _, _ := strings.Cut(line, "="); slices.Contains(passedVariables, strings.ToUpper(name)) {
			env = append(env, line)
		}
	}
	env = append(env, "HOME="+home, "USERPROFILE="+home, "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp)
	for _, more := range []map[string]string{ps.options.Commands[p.Command].Env, p.Env} {
		for _, name := range slices.Sorted(maps.Keys(more)) {
			env = append(env, name+"="+more[name])
		}
	}
	return env
}
