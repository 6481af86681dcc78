package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"satchel/agent"
	"satchel/agent/cli"
	"satchel/agent/egress"
	"satchel/vector/encoder/pretrained"
)

// Commands are the commands "satchel model".
type Commands struct {
	Library *Library
	Allow   []agent.AddressRange // that the operator opened for outbound requests
}

// Add adds the model of a folder or of a GGUF file.
func (c Commands) Add(ctx context.Context, path, name string, out io.Writer) error {
	info, err := c.Library.Add(ctx, path, name)
	return printAdded(info, err, out)
}

// Install downloads a model. The operator chooses the mirror, so its address may be
// private.
func (c Commands) Install(ctx context.Context, from cli.ModelDownload, out io.Writer) error {
	client := egress.New(egress.Policy{
		Allow:        c.Allow,
		AllowPrivate: from.Mirror != "",
		MaxResponse:  maxWeights + 1,
	})
	defer client.CloseIdleConnections()
	shown := progress{out: out}
	info, err := c.Library.Install(ctx, Install{
		Model:    from.Model,
		Name:     from.Name,
		Revision: from.Revision,
		SHA256:   from.SHA256,
		Mirror:   from.Mirror,
		Client:   client,
		Progress: shown.report,
	})
	if err != nil && shown.file != "" {
		err = fmt.Errorf("%w (the same command continues where it stopped)", err)
	}
	return printAdded(info, err, out)
}

// progress writes a line for each tenth of a file.
type progress struct {
	out    io.Writer
	file   string
	tenths int64
}

func (p *progress) report(file string, done, total int64) {
	if total < 1<<20 {
		return
	}
	tenths := done * 10 / total
	if file == p.file && tenths == p.tenths {
		return
	}
	p.file, p.tenths = file, tenths
	fmt.Fprintf(p.out, "%s: %d of %d MB\n", file, done>>20, total>>20)
}

func printAdded(info Info, err error, out io.Writer) error {
	if err != nil {
		return withoutCode(err)
	}
	what := fmt.Sprintf("vectors of %d numbers", info.Dims)
	use := fmt.Sprintf(
		"Use it: set embedding_provider to \"file\" and embedding_model to %q in an agent's settings.",
		info.Name,
	)
	if info.Kind == pretrained.Reranker {
		what, use = "a reranker", "Chat uses it from now on, and searches with rerank=true."
	}
	_, err = fmt.Fprintf(
		out,
		"%s is installed: %s, %s, up to %d tokens.\n%s\n",
		info.Name,
		what,
		megabytes(info.Size()),
		info.Tokens,
		use,
	)
	return err
}

func megabytes(n int64) string {
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// withoutCode returns an error for people, without its code.
func withoutCode(err error) error {
	var known *agent.Error
	if errors.As(err, &known) {
		return errors.New(known.Message)
	}
	return err
}

// List lists the models.
func (c Commands) List(out io.Writer) error {
	list, err := c.Library.List()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(
			out,
			"No models are installed. \"satchel model install NAME\" downloads one: %s.\n",
			strings.Join(Known(), ", "),
		)
		return err
	}
	writer := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(writer, "NAME\tKIND\tDIMENSIONS\tTOKENS\tSIZE\tFROM")
	for _, i := range list {
		dims := fmt.Sprint(i.Dims)
		if i.Dims == 0 {
			dims = "-"
		}
		fmt.Fprintf(
			writer,
			"%s\t%s\t%s\t%d\t%s\t%s\n",
			i.Name, i.Kind, dims, i.Tokens,
			megabytes(i.Size()),
			i.Source,
		)
	}
	return writer.Flush()
}

// Check checks the files of a model and computes a few texts with it.
func (c Commands) Check(ctx context.Context, name string, out io.Writer) error {
	report, err := c.Library.Check(ctx, name)
	if err != nil {
		return withoutCode(err)
	}
	fmt.Fprintf(out, "%s: the files are those that were added.\n", report.Name)
	fmt.Fprintf(out, "A chunk of %d characters takes %.0f ms on one processor.\n", len(chunk), 1000*report.Seconds)
	fmt.Fprintf(
		out,
		"%q is %.2f like the text that answers it and %.2f like another.\n",
		question, report.Answer, report.Other,
	)
	switch {
	case report.Published != nil && !*report.Published:
		return errors.New("the model does not compute the cosines that its publishers state")
	case report.Published != nil:
		fmt.Fprintln(out, "It computes the cosines that its publishers state.")
	}
	if report.Answer <= report.Other {
		return cli.ErrNoBetter
	}
	return nil
}

// Remove deletes a model.
func (c Commands) Remove(name string, out io.Writer) error {
	if err := c.Library.Remove(name); err != nil {
		return withoutCode(err)
	}
	_, err := fmt.Fprintf(
		out,
		"%s is removed. Agents that are set to it search by words until another model is chosen.\n",
		name,
	)
	return err
}
