package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (session *session) sources() *cobra.Command {
	c := session.manage(sourceList)
	c.Short = "List what an agent knows, add files, folders and pages"
	stop := session.recordCommand(
		sourceList,
		"stop",
		" that is being crawled or processed",
		func(ctx context.Context, id string) error {
			return session.api.call(ctx, http.MethodPost, session.path("sources", id, "stop"), nil, nil, nil)
		},
	)
	stop.Long = stop.Short + ". What has been read stays; the source can be read again later."
	c.AddCommand(session.addSources(), stop)
	return c
}

func (session *session) addSources() *cobra.Command {
	adder := sourceAdder{session: session}
	command := &cobra.Command{
		Use:   "add PATH...",
		Short: "Add files, all files of folders, or pages by URL",
		Args:  cobra.MinimumNArgs(1),
		Long: "Add files, all files of folders, or pages by URL, and wait until they are indexed.\n\n" +
			"The files of a folder are named by their path in it. Hidden files, the data folder and the settings " +
			"file of a server and the file with the API key are skipped, and so are files with the name of an " +
			"existing source, so that the command can be repeated.",
		Example: "  satchel sources add ./handbook https://example.com/hours --agent bakery",
		RunE: func(c *cobra.Command, args []string) error {
			return adder.run(c.Context(), args)
		},
	}
	command.Flags().BoolVar(
		&adder.replace,
		"replace",
		false,
		"replace sources with the same name instead of skipping the files",
	)
	command.Flags().BoolVar(&adder.crawl, "crawl", false, "follow the links of a page through its site")
	command.Flags().BoolVar(&adder.noWait, "no-wait", false, "do not wait until everything is indexed")
	return command
}

// sourceAdder adds sources.
type sourceAdder struct {
	*session
	replace, crawl, noWait bool

	total, done int
	failed      int
	existing    map[string][]string // ids of sources, by name
	created     []record
}

// item is one source to add: a file or a page.
type item struct {
	name string
	file string
	url  string
}

func (o *sourceAdder) run(ctx context.Context, args []string) error {
	items, err := o.findItems(args)
	if err != nil {
		return err
	}
	if err := o.readPresent(ctx); err != nil {
		return err
	}
	o.total, o.created = len(items), []record{}
	for _, it := range items {
		o.done++
		if err := o.add(ctx, it); err != nil {
			return err
		}
	}
	if !o.noWait {
		if err := o.waitRead(ctx); err != nil {
			return err
		}
	}
	if o.json {
		err = writeJSON(o.Out, o.created)
	}
	if o.failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d could not be added or read", o.failed, o.total))
	}
	return err
}

// findItems returns the files and pages that arguments name.
func (session *session) findItems(args []string) ([]item, error) {
	var items []item
	for _, arg := range args {
		if strings.HasPrefix(arg, "https://") || strings.HasPrefix(arg, "http://") {
			items = append(items, item{name: strings.TrimSuffix(arg[strings.Index(arg, "//")+2:], "/"), url: arg})
			continue
		}
		info, err := os.Stat(arg)
		if err == nil {
			err = session.refuseOwn(arg)
		}
		switch {
		case err != nil:
			return nil, err
		case !info.IsDir():
			items = append(items, item{name: filepath.Base(arg), file: arg})
		default:
			found, err := session.filesOf(arg)
			if err != nil {
				return nil, err
			}
			items = append(items, found...)
		}
	}
	return items, nil
}

// dataMarks are files of the folders in which Satchel itself keeps data, secrets included:
// the data folder and folders of replicas.
var dataMarks = []string{"satchel.lock", "satchel-replicas"}

func isDataFolder(folder string) bool {
	return slices.ContainsFunc(dataMarks, func(name string) bool {
		_, err := os.Lstat(filepath.Join(folder, name))
		return err == nil
	})
}

// holdsSecrets reports whether a file is a server's settings file, or the one with the API
// key of this command.
func (session *session) holdsSecrets(name string) bool {
	file, err := os.Stat(name)
	key, keyErr := os.Stat(session.keyFile)
	return filepath.Base(name) == "satchel.toml" || (err == nil && keyErr == nil && os.SameFile(file, key))
}

// refuseOwn returns an error if a file or folder is, or is in, a folder of Satchel itself, or
// holds its secrets.
func (session *session) refuseOwn(name string) error {
	if session.holdsSecrets(name) {
		return fmt.Errorf("%s is not added: it is for secrets of Satchel itself", name)
	}
	at, err := filepath.Abs(name)
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	for err == nil {
		if isDataFolder(at) {
			return fmt.Errorf("%s is not added: Satchel keeps its own data in %s", name, at)
		}
		if filepath.Dir(at) == at {
			return nil
		}
		at = filepath.Dir(at)
	}
	return err
}

// filesOf returns the files below a folder in the order of their names. It leaves out
// hidden files and what Satchel itself keeps.
func (session *session) filesOf(folder string) ([]item, error) {
	var items []item
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(entry.Name(), ".") && file != folder
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (hidden || isDataFolder(file)):
			return fs.SkipDir
		case hidden || !entry.Type().IsRegular() || session.holdsSecrets(file):
			return nil
		}
		name, err := filepath.Rel(folder, file)
		items = append(items, item{name: filepath.ToSlash(name), file: file})
		return err
	})
	return items, err
}

const maxSources = 100_000 // that a repeated command knows by their names

func (o *sourceAdder) readPresent(ctx context.Context) error {
	o.existing = map[string][]string{}
	sources, err := o.api.list(ctx, o.path("sources"), "sources", nil, maxSources)
	for _, source := range sources {
		name, _ := source["name"].(string)
		id, _ := source["id"].(string)
		o.existing[name] = append(o.existing[name], id)
	}
	return err
}

// add adds one source. A file that the server refuses does not stop the others.
func (o *sourceAdder) add(ctx context.Context, it item) error {
	old := o.existing[it.name]
	if len(old) > 0 && !o.replace {
		o.progress(it.name, "there already")
		return nil
	}
	var made record
	err := o.create(ctx, it, &made)
	var refused *Failure
	if errors.As(err, &refused) &&
		refused.Status != http.StatusUnauthorized &&
		refused.Status != http.StatusForbidden &&
		refused.Status != http.StatusNotFound {
		o.failed++
		o.progress(it.name, clean(refused.Message))
		return nil
	}
	if err != nil {
		return err
	}
	o.created = append(o.created, made)
	for _, id := range old {
		if err := o.api.call(ctx, http.MethodDelete, o.path("sources", id), nil, nil, nil); err != nil {
			return err
		}
	}
	o.progress(it.name, "sent")
	return nil
}

func (o *sourceAdder) create(ctx context.Context, it item, made *record) error {
	switch {
	case it.file != "":
		return o.upload(ctx, it, made)
	case o.crawl:
		return o.api.call(
			ctx,
			http.MethodPost,
			o.path("sources", "crawl"),
			nil,
			map[string]any{"url": it.url, "name": it.name},
			made,
		)
	}
	return o.api.call(
		ctx,
		http.MethodPost,
		o.path("sources"),
		nil,
		map[string]any{
			"type": "url",
			"url":  it.url,
			"name": it.name,
		},
		made,
	)
}

// upload sends a file without holding it in memory.
func (o *sourceAdder) upload(ctx context.Context, it item, made *record) error {
	resp, err := o.api.send(ctx, request{
		method: http.MethodPost,
		path:   o.path("sources"),
		open:   func() upload { return openForm(it) },
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return decode(resp.Body, made)
}

// openForm opens a file as a form that is written while it is sent.
func openForm(it item) upload {
	file, err := os.Open(it.file)
	if err != nil {
		return upload{err: err}
	}
	reader, writer := io.Pipe()
	form := multipart.NewWriter(writer)
	go func() {
		defer file.Close()
		err := errors.Join(form.WriteField("type", "file"), form.WriteField("name", it.name))
		part, partErr := form.CreateFormFile("file", path.Base(it.name))
		if err = errors.Join(err, partErr); err == nil {
			_, err = io.Copy(part, file)
		}
		writer.CloseWithError(errors.Join(err, form.Close()))
	}()
	return upload{body: reader, mediaType: form.FormDataContentType()}
}

// progress prints the outcome of an item on a line, with a bar for a person.
func (o *sourceAdder) progress(name, what string) {
	if o.isTerminal() {
		fmt.Fprint(o.Notes, bar(o.done, o.total), " ")
	}
	fmt.Fprintf(o.Notes, "%d/%d  %s: %s\n", o.done, o.total, cell(name), cell(what))
}

// bar draws how much of total is done.
func bar(done, total int) string {
	const width = 20
	filled := width
	if total > 0 {
		filled = width * done / total
	}
	return "[" + strings.Repeat("#", filled) + strings.Repeat(".", width-filled) + "]"
}

// waitRead waits until all new sources are read, and says which are not.
func (o *sourceAdder) waitRead(ctx context.Context) error {
	const interval = 1500 * time.Millisecond
	for delay := 200 * time.Millisecond; ; delay = min(2*delay, interval) {
		working, err := o.api.list(
			ctx,
			o.path("sources"),
			"sources",
			url.Values{"status": {"processing", "crawling", "updating"}},
			maxSources,
		)
		if err != nil {
			return err
		}
		remaining := 0
		now := byID(working)
		for _, source := range o.created {
			if now[source.text("id")] != nil {
				remaining++
			}
		}
		if remaining == 0 {
			return o.readOutcomes(ctx)
		}
		if o.isTerminal() {
			fmt.Fprintf(
				o.Notes,
				"\r%s %d of %d read",
				bar(len(o.created)-remaining, len(o.created)),
				len(o.created)-remaining,
				len(o.created),
			)
		}
		if err := o.api.wait(ctx, delay); err != nil {
			return err
		}
	}
}

func byID(records []record) map[string]record {
	out := map[string]record{}
	for _, r := range records {
		out[r.text("id")] = r
	}
	return out
}

// readOutcomes reads the new sources again, and says what they became.
func (o *sourceAdder) readOutcomes(ctx context.Context) error {
	if len(o.created) == 0 {
		return nil
	}
	if o.isTerminal() {
		fmt.Fprintln(o.Notes)
	}
	sources, err := o.api.list(ctx, o.path("sources"), "sources", nil, maxSources)
	if err != nil {
		return err
	}
	now, chunks := byID(sources), 0
	for i, source := range o.created {
		source = now[source.text("id")]
		if source == nil {
			continue
		}
		o.created[i] = source
		n, _ := strconv.Atoi(source.text("chunks"))
		chunks += n
		if source.text("status") == "error" {
			o.failed++
			fmt.Fprintf(o.Notes, "%s: %s\n", source.text("name"), source.text("error.message"))
		}
	}
	fmt.Fprintf(o.Notes, "Sources: %d, chunks: %d\n", len(o.created), chunks)
	return nil
}
