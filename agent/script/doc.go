// Package script runs JavaScript that users wrote, in child processes of this
// same program.
//
// A child holds one QuickJS engine, all of whose memory is saved when it has
// been made and put back after each script, byte for byte, so no script sees
// what another left behind (heap.go). The engine has the
// language and JSON, console and fetch, and nothing else: no files, processes,
// modules, environment or timers. Its time, memory and stack are bounded from
// within; from without the kernel bounds the child's address space and keeps
// it from files and the network (Linux, see agent/child), the child watches its
// own memory, and the parent kills it 200 ms after its time. A child that is killed takes only its own script with it. Children die
// with their parent: by the kernel's hand on Linux, elsewhere when their
// standard input ends.
//
// The code of a script is the body of an async function; return gives its
// result and await works. It sees its variables, console (log, info, warn,
// error, debug) and fetch, whose response has ok, status, statusText, url,
// headers, text() and json(). Requests are made by the parent, through
// Options.Fetch.
//
// A program that makes a Pool calls RunChild before anything else, and so does
// the TestMain of a package whose tests run scripts:
//
//	if script.RunChild(os.Args[1:]) {
//		return
//	}
package script
