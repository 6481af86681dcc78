// Package script runs JavaScript written by users, in child processes of this
// same program.
//
// A child holds one QuickJS engine. All of the engine's memory is saved after
// its creation and restored after each script, byte for byte, so no script sees
// what another one left behind (heap.go). The engine has the language with
// JSON, console and fetch, and nothing else: no files, processes, modules,
// environment or timers. The engine itself limits its time, memory and stack.
// From outside, the kernel limits the child's address space and denies it files
// and the network (Linux, see agent/child), the child monitors its own memory,
// and the parent kills it 200 ms after its time is up. A killed child takes
// only its own script with it. Children die with their parent: on Linux the
// kernel kills them, elsewhere they exit when their standard input ends.
//
// The code of a script is the body of an async function; return sets its result
// and await works. It sees its variables, console (log, info, warn, error,
// debug) and fetch, whose response has ok, status, statusText, url, headers,
// text() and json(). The parent makes the requests, through Options.Fetch.
//
// A program that creates a Pool must call RunChild first, and so must the
// TestMain of a package whose tests run scripts:
//
//	if script.RunChild(os.Args[1:]) {
//		return
//	}
package script
