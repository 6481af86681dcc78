package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// peak returns the largest memory of the process, in MB; Linux only.
func (p *process) peak(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// upload creates a source from a file.
func (p *process) upload(b *testing.B, name string, data []byte) {
	b.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", name)
	if err != nil {
		b.Fatal(err)
	}
	_, _ = part.Write(data)
	_ = w.Close()
	resp, err := http.Post(p.url+"/api/agents/reader/sources", w.FormDataContentType(), &form)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusCreated {
		b.Fatalf("%d %s", resp.StatusCode, text)
	}
}

// rowsOf returns a CSV file of about so many bytes.
func rowsOf(size int) []byte {
	var b bytes.Buffer
	b.WriteString("id,name,city,notes\n")
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(
			&b,
			"%d,Person %d,Town %d,\"Ordered %d loaves of rye and a cake with %d almonds for the feast\"\n",
			i, i, i%97, i%13, i%31,
		)
	}
	return b.Bytes()
}

// imports are the imports during which a client reads.
var imports = []struct {
	name string
	run  func(b *testing.B, p *process)
}{
	{"nothing", func(*testing.B, *process) {}},
	{"csv-10MB", func(b *testing.B, p *process) { p.upload(b, "people.csv", rowsOf(10<<20)) }},
	{"files-1000", func(b *testing.B, p *process) {
		for i := range 1000 {
			p.upload(
				b,
				fmt.Sprintf("note-%d.txt", i),
				fmt.Appendf(nil, "Note %d says when the oven is lit and who brings the flour.\n", i),
			)
		}
	}},
}

// BenchmarkImportBesideReads reads contacts, 200 a second, while another process uploads
// and indexes a large import. "p99-ms" is the 99th percentile of the reads' times;
// "nothing" shows it without an import. Run it with -benchtime 4000x, which takes 20
// seconds each.
func BenchmarkImportBesideReads(b *testing.B) {
	binary := build(b)
	for _, im := range imports {
		b.Run(im.name, func(b *testing.B) {
			data := filepath.Join(b.TempDir(), "data")
			makeReader(b, data)
			p := spawn(b, binary, data)
			defer p.stop(b)
			contact := p.get(b, "/api/agents/reader/contacts?limit=1")
			_, contact, _ = strings.Cut(contact, `"id":"`)
			contact, _, _ = strings.Cut(contact, `"`)
			imported := make(chan struct{})
			go func() {
				defer close(imported)
				im.run(b, p)
			}()
			times := make([]time.Duration, 0, b.N)
			pace := time.NewTicker(5 * time.Millisecond)
			defer pace.Stop()
			b.ResetTimer()
			for range b.N {
				<-pace.C
				started := time.Now()
				p.get(b, "/api/agents/reader/contacts/"+contact)
				times = append(times, time.Since(started))
			}
			b.StopTimer()
			<-imported
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(p.peak(b), "peak-MB")
		})
	}
}

func makeReader(b *testing.B, data string) {
	b.Helper()
	folder, err := store.Open(store.Options{Path: data})
	if err != nil {
		b.Fatal(err)
	}
	db, err := folder.CreateAgent(context.Background(), agent.Agent{Name: "reader"}, "")
	if err != nil {
		b.Fatal(err)
	}
	fill(b, db, 1000)
	if err := folder.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkImportMemory imports a file of some 20,000 chunks, waits until it is ready,
// and reports the largest memory of the process.
func BenchmarkImportMemory(b *testing.B) {
	binary := build(b)
	for range b.N {
		data := filepath.Join(b.TempDir(), "data")
		makeReader(b, data)
		p := spawn(b, binary, data)
		p.upload(b, "people.csv", rowsOf(12<<20))
		var sources string
		for !strings.Contains(sources, `"status":"ready"`) {
			if sources = p.get(b, "/api/agents/reader/sources"); strings.Contains(sources, `"status":"error"`) {
				b.Fatal(sources)
			}
			select {
			case <-time.After(time.Second):
			case <-b.Context().Done():
			}
		}
		_, chunks, _ := strings.Cut(sources, `"chunks":`)
		n, _ := strconv.Atoi(chunks[:strings.IndexByte(chunks, ',')])
		b.ReportMetric(float64(n), "chunks")
		b.ReportMetric(p.peak(b), "peak-MB")
		p.stop(b)
	}
}
