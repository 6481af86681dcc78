package n8n

import (
	"fmt"
	"regexp"
	"strings"

	"satchel/agent"
)

// unsupportedNames are names in expressions and code that have no equivalent here.
var unsupportedNames = []struct {
	pattern func() *regexp.Regexp
	code    string
	message string
}{
	{
		agent.Pattern(`\$(env|vars|secrets|credentials)\b`),
		"SECRET",
		"Reads $%s, which is not imported: nothing of n8n's environment, variables and secrets is read.",
	},
	{
		agent.Pattern(`\$?(getWorkflowStaticData)\b`),
		"STATIC_DATA",
		"Uses $%s: workflows keep no data between executions here. Use a table.",
	},
	{agent.Pattern(`\b(require|import)\s*\(`), "MODULE", "Loads modules with %s, which scripts here cannot."},
	{
		agent.Pattern(`\bthis\.(helpers|getNodeParameter|getCredentials|getWorkflowStaticData|getInputData)\b`),
		"HELPERS",
		"Uses this.%s of n8n, which is not there.",
	},
	{agent.Pattern(`(\$binary|\.binary)\b`), "BINARY", "Reads files of items (%s), which are not imported."},
	{
		agent.Pattern(`\$(jmespath|evaluateExpression|prevNode|parameter|self|position|fromAI|getPairedItem|` +
			`nodeVersion|nodeId|mode|resumeWebhookUrl|webhookId)\b`),
		"EXPRESSION",
		"Uses $%s, which is not supported.",
	},
	{
		agent.Pattern(`\]\.(context)\b`),
		"EXPRESSION",
		"Reads the %s of a loop, which is not kept here: a loop ends by itself.",
	},
	{agent.Pattern(`\$(item)\s*\(`), "EXPRESSION", "Uses $%s with a computed number, which is not supported."},
	{
		agent.Pattern(`\$execution\.(resumeUrl|resumeFormUrl|customData|mode)\b`),
		"EXPRESSION",
		"Uses $execution.%s, which is not supported.",
	},
	{
		agent.Pattern(`\b(setTimeout|setInterval|XMLHttpRequest|Intl)\b`),
		"EXPRESSION",
		"Uses %s, which scripts here do not have.",
	},
}

var nodeReference = agent.Pattern(`\$\(\s*(?:"([^"\n]*)"|'([^'\n]*)'|` + "`([^`\n]*)`" +
	`)\s*\)|\$(?:node|items)\s*[\[(]\s*(?:"([^"\n]*)"|'([^'\n]*)')\s*[\])]|\$node\.([A-Za-z_][A-Za-z0-9_]*)`)

// references returns the names of the nodes that a script reads.
func references(code string) (names []string) {
	for _, m := range nodeReference().FindAllStringSubmatch(code, -1) {
		for _, name := range m[1:] {
			if name != "" {
				names = append(names, strings.NewReplacer(`\'`, "'", `\"`, `"`).Replace(name))
			}
		}
	}
	return names
}

// script returns code preceded by definitions of n8n's names.
func (env *env) script(code string) string {
	for _, f := range unsupportedNames {
		if m := f.pattern().FindStringSubmatch(code); m != nil {
			env.u.fail(f.code, fmt.Sprintf(f.message, m[len(m)-1]))
		}
	}
	if strings.Contains(code, "DateTime") ||
		strings.Contains(code, "$now") ||
		strings.Contains(code, "$today") ||
		strings.Contains(code, ".toDateTime(") {
		env.u.approximate("DATES", datesInUTC)
	}
	if strings.Contains(code, ".toLocale") {
		env.u.approximate(
			"LOCALE",
			"Texts of dates and numbers are not written in the way of a language: locales are not known here.",
		)
	}
	return withSections(env.names(code) + code)
}

// names declares the names that code of n8n reads.
func (env *env) names(code string) string {
	var out strings.Builder
	mentions := func(name string) bool { return containsName(code, name) }
	if mentions("$input") || mentions("$items") || mentions("$all") {
		fmt.Fprintf(&out, "const $all = %s\n", env.all())
		if mentions("$input") || mentions("$items") {
			out.WriteString("const $input = $from(() => $all, () => " + env.currentItemJS() + ")\n")
		}
	}
	if mentions("$json") || mentions("$item") || mentions("$data") {
		out.WriteString("const $json = " + env.currentItemJS() + "\n")
	}
	if mentions("$itemIndex") || mentions("$runIndex") {
		index := "0"
		if env.at != nil {
			index = "index"
		}
		fmt.Fprintf(&out, "const $itemIndex = %s, $runIndex = %s\n", index, index)
	}
	out.WriteString(env.declareNodesJS(code))
	if mentions("$execution") {
		out.WriteString("const $execution = { id: execution.id, mode: \"production\" }\n")
	}
	if mentions("$workflow") {
		out.WriteString("const $workflow = { id: workflow.id, name: workflow.name, active: true }\n")
	}
	if mentions("$now") {
		out.WriteString("const $now = DateTime.now()\n")
	}
	if mentions("$today") {
		out.WriteString("const $today = DateTime.now().startOf(\"day\")\n")
	}
	return out.String()
}

// currentItemJS returns JavaScript for the current item.
func (env *env) currentItemJS() string {
	if env.in.list {
		return "(" + env.in.ref.js + "[0] ?? {})"
	}
	return env.in.ref.js
}

// all returns JavaScript for all input items.
func (env *env) all() string {
	if env.in.list {
		return env.in.ref.js
	}
	return "[" + env.in.ref.js + "]"
}

// declareNodesJS declares $("name") and its older forms, for the names that code reads.
func (env *env) declareNodesJS(code string) string {
	if !containsName(code, "$") && !containsName(code, "$node") && !containsName(code, "$items") {
		return ""
	}
	var refs []string
	seen := map[string]bool{}
	for _, name := range references(code) {
		if seen[name] {
			continue
		}
		seen[name] = true
		other := env.c.byName[name]
		if other == nil {
			env.u.fail("REFERENCE", fmt.Sprintf("Reads the node %q, which is not there.", clip(name, 60)))
			return ""
		}
		all, item, ok := env.read(other)
		if !ok {
			return ""
		}
		refs = append(refs, fmt.Sprintf("  [%s]: $from(() => %s, () => %s),\n", quote(name), all, item))
	}
	if calls := strings.Count(code, "$(") + strings.Count(code, "$node") - strings.Count(
		code,
		"$node = ",
	); len(refs) == 0 &&
		calls > 0 {
		env.u.fail("REFERENCE", "Reads nodes by names that are computed.")
	}
	return "const $node = {\n" + strings.Join(refs, "") + "}\nconst $ = (name) => $node[name]\n" +
		"const $items = (name) => (name === undefined ? $input : $node[name]).all()\n"
}

// read returns JavaScript for all items of another unit, and for the one that
// belongs to the current item.
func (env *env) read(other *unit) (all, item string, ok bool) {
	stream := outputOf(other)
	if stream == nil {
		env.u.fail(
			"REFERENCE",
			fmt.Sprintf("Reads the node %q, which does not come before this one.", clip(other.name, 60)),
		)
		return "", "", false
	}
	if js, ok := env.pairedItemJS(other, stream); ok {
		item = js
	} else {
		item = "$unpaired(" + quote(other.name) + ")"
	}
	if env.at.within(stream.at) {
		switch {
		case stream.list:
			return stream.ref.js, item, true
		case stream.taken != "":
			return "(" + stream.taken + " ? [" + stream.ref.js + "] : [])", item, true
		}
		return "[" + stream.ref.js + "]", item, true
	}
	all, _ = env.c.itemsOf(other, stream, env.at.context())
	return all, item, true
}

// pairedItemJS returns the item of another unit that belongs to the current one.
func (env *env) pairedItemJS(other *unit, s *stream) (js string, ok bool) {
	if r := env.loopOf(other); r != nil {
		return r.variable, true
	}
	if !s.list && env.at.within(s.at) {
		return s.ref.js, true
	}
	return "", false
}

// loopOf returns the loop around the unit whose items are those of another.
func (env *env) loopOf(other *unit) *region {
	for r := env.at; r != nil; r = r.parent {
		for _, u := range r.same {
			if u == other {
				return r
			}
		}
	}
	return nil
}

// outputOf returns the stream of the first output of a unit that has one.
func outputOf(u *unit) *stream {
	for output := range 16 {
		if s := u.outputs[output]; s != nil {
			return s
		}
	}
	return nil
}
