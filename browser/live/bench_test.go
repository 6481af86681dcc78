package live

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/browser"
)

// spinning is a page that changes with every frame.
var spinning = map[string]string{
	"/spin": `<title>Spin</title><style>@keyframes s{to{transform:rotate(1turn)}}div{width:300px;height:300px;` +
		`background:linear-gradient(red,blue);animation:s 1s linear infinite}</style><div></div>`,
	"/click": `<title>Click</title><body style="margin:0" ` +
		`onmousedown="document.body.style.background=document.body.style.background==='red'?'blue':'red'">` +
		`<div style="height:600px"></div>`,
}

// processorTime returns the processor time that this process and its children,
// Chromium and its driver, have used so far, from /proc.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	parents, used := map[int]int{}, map[int]time.Duration{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		b.Fatal("needs /proc: ", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		parents[pid], _ = strconv.Atoi(fields[1])
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		used[pid] = time.Duration(user+system) * (time.Second / 100)
	}
	var sum time.Duration
	for pid, t := range used {
		for at := pid; at > 1; at = parents[at] {
			if at == os.Getpid() {
				sum += t
				break
			}
		}
	}
	return sum
}

// frames reads n frames.
func (v *Viewer) frames(b *testing.B, n int) {
	b.Helper()
	for range n {
		v.waitFor(b, "a frame", isFrame)
	}
}

// BenchmarkCast watches an animated page with a number of viewers: the processor
// seconds for each second of watching, Chromium and its driver included. One
// iteration is one frame; "fps" is the frame rate of the first viewer.
func BenchmarkCast(b *testing.B) {
	ts := newTestServer(b, spinning)
	for _, viewers := range []int{0, 1, 20} {
		b.Run("viewers="+strconv.Itoa(viewers), func(b *testing.B) {
			s := ts.openSession(b, "/spin")
			defer func() { _ = ts.browser.Delete(context.Background(), ts.db, s.ID()) }()
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			var first *Viewer
			for i := range viewers {
				v := ts.newViewer(b, s, Watch{})
				if i == 0 {
					first = v
					first.frames(b, 3)
					continue
				}
				go func() {
					for {
						if _, err := v.Next(ctx); err != nil {
							return
						}
					}
				}()
			}
			used, start := processorTime(b), time.Now()
			b.ResetTimer()
			if first != nil {
				first.frames(b, b.N)
			} else {
				<-time.After(time.Duration(b.N) * time.Second / DefaultFPS)
			}
			elapsed := time.Since(start).Seconds()
			b.ReportMetric((processorTime(b)-used).Seconds()/elapsed, "cores")
			b.ReportMetric(float64(b.N)/elapsed, "fps")
		})
	}
}

// BenchmarkClick presses the mouse on a page that shows it, and waits for the frame
// that shows it ("p50-ms"). "call-ms" is the time of the bare call to the page.
func BenchmarkClick(b *testing.B) {
	ts := newTestServer(b, spinning)
	s := ts.openSession(b, "/click")
	v, h := ts.newViewer(b, s, Watch{}), ts.live.Controller(s, "")
	b.Cleanup(h.Close)
	v.frames(b, 1)
	cdp, err := s.ActivePage().CDP(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var seen, calls []time.Duration
	for b.Loop() {
		<-time.After(2 * time.Second / DefaultFPS) // a person clicks when the page is still
		at := time.Now()
		if _, err := browser.Within(b.Context(), func() (any, error) {
			return cdp.Send("Runtime.evaluate", map[string]any{"expression": "1"})
		}); err != nil {
			b.Fatal(err)
		}
		calls = append(calls, time.Since(at))
		at = time.Now()
		for _, kind := range []string{"mousePressed", "mouseReleased"} {
			if _, err := h.Do(b.Context(), Input{
				Kind:  "mouseEvent",
				Mouse: Mouse{Type: kind, X: 100, Y: 100, Button: "left"},
			}); err != nil {
				b.Fatal(err)
			}
		}
		v.frames(b, 1)
		seen = append(seen, time.Since(at))
	}
	middle := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2].Microseconds()) / 1000
	}
	b.ReportMetric(middle(seen), "p50-ms")
	b.ReportMetric(middle(calls), "call-ms")
}

// recordedPages returns a typical page, with a list, a form and a button that changes
// it, and a page that changes all the time.
func recordedPages() map[string]string {
	var rows strings.Builder
	for i := range 300 {
		rows.WriteString(`<tr><td class="n">` + strconv.Itoa(i) + `</td><td><a href="/shop?item=` + strconv.Itoa(i) +
			`">Bread of the day</a></td><td><span class="price">3.20</span> <button>buy</button></td></tr>`)
	}
	return map[string]string{
		"/shop": `<title>Shop</title><style>td{padding:4px}.price{color:green}</style><h1>Shop</h1><form><input id=q><button id=more type=button
			onclick="for (let i = 0; i < 50; i++) document.querySelector('tbody').append(document.querySelector('tr').cloneNode(true))">more</button></form><table><tbody>` + rows.String() + `</tbody></table>`,
		"/ticker": `<title>Ticker</title><table><tbody>` + rows.String() + `</tbody></table><script>let n = 0; const cells = document.querySelectorAll('.n');
			setInterval(() => { for (let i = 0; i < 20; i++) cells[n++ % cells.length].textContent = n }, 50)</script>`,
	}
}

// BenchmarkRecording alternates between recorded sessions and one that is not: it
// measures what recording adds to the time of actions and to the processor time of
// server, Chromium and driver together. One iteration is ten visits of a page with a
// click and a query; "idle" is a second of a page that changes 400 cells in it.
func BenchmarkRecording(b *testing.B) {
	ts := newTestServer(b, recordedPages())
	kinds := []string{"plain", "recorded"}
	sessions := map[string]*browser.Session{}
	for _, kind := range kinds {
		sessions[kind] = ts.openSession(b, "/shop")
	}
	if _, err := ts.live.Recording(sessions["recorded"], ""); err != nil {
		b.Fatal(err)
	}
	act := func(s *browser.Session, a agent.Action) time.Duration {
		start := time.Now()
		if _, err := s.Do(b.Context(), a); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	text := "rye"
	elapsed := map[string][]time.Duration{}
	used := map[string]time.Duration{}
	for b.Loop() {
		for _, kind := range kinds {
			before := processorTime(b)
			for range 10 {
				for _, a := range []agent.Action{
					{Action: "navigate", URL: ts.site.URL + "/shop"},
					{Action: "click", Selector: "#more"},
					{Action: "type", Selector: "#q", Text: &text},
					{Action: "extract", Selector: ".price"},
				} {
					elapsed[kind+" "+a.Action] = append(elapsed[kind+" "+a.Action], act(sessions[kind], a))
				}
			}
			used[kind] += processorTime(b) - before
			act(sessions[kind], agent.Action{Action: "navigate", URL: ts.site.URL + "/ticker"})
			before = processorTime(b)
			<-time.After(time.Second)
			used[kind+" idle"] += processorTime(b) - before
			act(sessions[kind], agent.Action{Action: "navigate", URL: "about:blank"})
		}
	}
	for name, all := range elapsed {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, strings.ReplaceAll(name, " ", "-")+"-ms")
	}
	for name, t := range used {
		b.ReportMetric(float64(t.Milliseconds())/float64(b.N), strings.ReplaceAll(name, " ", "-")+"-cpu-ms")
	}
}
