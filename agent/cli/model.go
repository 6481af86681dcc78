package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
)

// Models is what the commands do with the text models of the data folder. They
// write what people read to out.
type Models interface {
	Add(ctx context.Context, path, name string, out io.Writer) error
	Install(ctx context.Context, from ModelDownload, out io.Writer) error
	List(out io.Writer) error
	Check(ctx context.Context, name string, out io.Writer) error
	Evaluate(ctx context.Context, e Evaluation, out io.Writer) error
	Remove(name string, out io.Writer) error
}

// ErrNoBetter is returned by Models.Check for a model whose files are right but
// which rates a text that answers a question no higher than another text.
var ErrNoBetter = errors.New("the model finds the text that answers no better than the other")

// ModelDownload specifies which model is downloaded, and from where.
type ModelDownload struct {
	Model    string // a name that the program knows, or a repository
	Name     string // in the data folder
	Revision string
	SHA256   string // of model.safetensors
	Mirror   string // in place of https://huggingface.co
}

// Evaluation specifies the questions with which a model is measured.
type Evaluation struct {
	Model     string
	Questions string // a CSV file with the columns question, source and, optionally, passage
	Documents string // the folder of the sources
}

// modelSettings are the settings used by the commands for models.
var modelSettings = []string{"data", "outbound-allow"}

func (program *Program) models(root *cobra.Command) *cobra.Command {
	models := &cobra.Command{
		Use:     "model",
		Short:   "Add, install, check and remove models for search, even while the server runs",
		Example: "  satchel model install multilingual-e5-small",
	}
	var name string
	add := command{
		use: "add PATH",
		short: "Add a model from a folder with model.safetensors, config.json and " +
			"tokenizer.json, or from a .gguf file",
		example:  "model add ~/models/e5-small",
		args:     1,
		settings: modelSettings[:1],
		run: func(c *cobra.Command, args []string) error {
			return program.Models(program.config).Add(c.Context(), args[0], name, program.Out)
		},
	}.addTo(root)
	add.Flags().StringVar(&name, "name", "", "its name in Satchel (default: the name of the folder or file)")
	var from ModelDownload
	install := command{
		use:      "install NAME",
		short:    "Download a model, or continue to, and check its SHA-256",
		example:  "model install multilingual-e5-small",
		args:     1,
		settings: modelSettings,
		long: "NAME is all-MiniLM-L6-v2, arctic-embed-xs, bge-small-en-v1.5, multilingual-e5-small, " +
			"ms-marco-MiniLM-L6 (a reranker),\nor a repository of huggingface.co with --sha256.",
		run: func(c *cobra.Command, args []string) error {
			from.Model = args[0]
			return program.Models(program.config).Install(c.Context(), from, program.Out)
		},
	}.addTo(root)
	install.Flags().StringVar(&from.Name, "name", "", "its name in Satchel (default: the last part of NAME)")
	install.Flags().StringVar(&from.Revision, "revision", "", "commit, branch or tag of a repository (default: main)")
	install.Flags().StringVar(&from.SHA256, "sha256", "", "the SHA-256 of model.safetensors, required for a repository")
	install.Flags().StringVar(&from.Mirror, "mirror", "", "URL to download from instead of https://huggingface.co")
	models.AddCommand(
		add,
		install,
		command{
			use:      "list",
			short:    "List the models",
			example:  "model list",
			settings: modelSettings[:1],
			run: func(*cobra.Command, []string) error {
				return program.Models(program.config).List(program.Out)
			},
		}.addTo(root),
		program.checkModel(root),
		command{
			use:      "remove NAME",
			short:    "Delete a model",
			example:  "model remove multilingual-e5-small",
			args:     1,
			settings: modelSettings[:1],
			run: func(_ *cobra.Command, args []string) error {
				return program.Models(program.config).Remove(args[0], program.Out)
			},
		}.addTo(root),
	)
	return models
}

func (program *Program) checkModel(root *cobra.Command) *cobra.Command {
	var evaluation Evaluation
	check := command{
		use:      "check NAME",
		short:    "Check a model's files, and measure how well it finds your documents",
		example:  "model check multilingual-e5-small --questions questions.csv --documents handbook",
		args:     1,
		settings: modelSettings[:1],
		long: "With --questions and --documents it asks the questions of a CSV file (columns question, " +
			"source and, optionally, passage),\nwith the built-in model and with this one, and prints " +
			"how high the answers rank.",
		run: func(c *cobra.Command, args []string) error {
			if (evaluation.Questions == "") != (evaluation.Documents == "") {
				return errors.New("--questions and --documents belong together")
			}
			err := program.Models(program.config).Check(c.Context(), args[0], program.Out)
			if evaluation.Questions == "" || err != nil && !errors.Is(err, ErrNoBetter) {
				return err
			}
			evaluation.Model = args[0]
			return errors.Join(err, program.Models(program.config).Evaluate(c.Context(), evaluation, program.Out))
		},
	}.addTo(root)
	check.Flags().StringVar(
		&evaluation.Questions,
		"questions",
		"",
		"CSV file with questions and the documents that answer them",
	)
	check.Flags().StringVar(&evaluation.Documents, "documents", "", "folder of the documents")
	return check
}
