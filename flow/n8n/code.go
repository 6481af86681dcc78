package n8n

import "strings"

// maxCode limits code, in bytes, so that there is room for what is put before it.
const maxCode = 500_000

// convertCode makes a code node, in which declarations of n8n's names precede the code.
func convertCode(converter *converter, u *unit) {
	kind := shortKind(u.kind)
	code := u.p.text("jsCode")
	each := u.p.text("mode") == "runOnceForEachItem"
	switch kind {
	case "function":
		code = u.p.text("functionCode")
	case "functionItem":
		code, each = u.p.text("functionCode"), true
	}
	if language := u.p.or("language", "javaScript"); language != "javaScript" {
		u.fail("PYTHON", "The code is in Python; only JavaScript runs here.")
	}
	if len(code) > maxCode {
		u.fail("CODE_SIZE", "The code is too long.")
	}
	if each {
		converter.codeEach(u, code)
		return
	}
	env, items := converter.whole(u)
	env.in = &stream{
		at:     env.at,
		from:   env.in.from,
		list:   true,
		ref:    ref{path: env.in.ref.path, js: items[0]},
		guards: env.in.guards,
		same:   env.in.same,
	}
	one := single(code)
	code = "const $run = async () => {\n" + code + "\n}\n"
	if containsName(code, "items") {
		code = "const items = $all.map((json) => ({ json }))\n" + code
	}
	if one {
		env.emit("code", map[string]any{"code": env.script(code + "return $out(await $run())[0]")})
		return
	}
	env.emit("code", map[string]any{"code": env.script(code + "return { items: $out(await $run()) }")})
	if !u.unsupported {
		s := listStream(u.id, env.at)
		s.same = []*unit{u}
		u.outputs[0] = s
	}
}

// codeEach makes a code node that runs once for each item.
func (converter *converter) codeEach(u *unit, code string) {
	e := converter.each(u)
	if shortKind(u.kind) == "functionItem" {
		code = "const $item = $copy($json)\nconst $run = async (item) => {\n" + code +
			"\n}\nreturn $one(await $run($item))"
	} else {
		code = "const $run = async () => {\n" + code + "\n}\nreturn $one(await $run())"
	}
	e.emit("code", map[string]any{"code": e.script(code)})
}

// single reports whether every return statement in code returns one item.
func single(code string) bool {
	returns := 0
	for at := 0; ; {
		index := strings.Index(code[at:], "return")
		if index < 0 {
			return returns > 0
		}
		at += index + len("return")
		if at < len(code) && isWord(code[at]) || at > len("return") && isWord(code[at-len("return")-1]) {
			continue
		}
		rest := strings.TrimLeft(code[at:], " \t\n\r(")
		switch {
		case strings.HasPrefix(rest, "{"):
		case strings.HasPrefix(rest, "[") && entries(rest) == 1:
		default:
			return false
		}
		returns++
	}
}

// entries counts the entries of a list that a text begins with; 2 if unsure.
func entries(list string) int {
	depth, count, empty := 0, 1, true
	var mark byte
	for index := 0; index < len(list); index++ {
		char := list[index]
		switch {
		case mark != 0:
			if char == '\\' {
				index++
			} else if char == mark {
				mark = 0
			}
		case char == '"' || char == '\'' || char == '`':
			mark, empty = char, false
		case char == '[' || char == '{' || char == '(':
			depth++
			empty = empty && depth == 1
		case char == ']' || char == '}' || char == ')':
			if depth--; depth == 0 {
				after := strings.TrimLeft(list[index+1:], " \t\n\r")
				if empty || after != "" && (after[0] == '.' || after[0] == '[') {
					return 2
				}
				return count
			}
		case char == ',' && depth == 1:
			if strings.TrimLeft(list[index+1:], " \t\n\r") != "" &&
				strings.TrimLeft(list[index+1:], " \t\n\r")[0] != ']' {
				count++
			}
		case char == '.' && depth == 1 && strings.HasPrefix(list[index:], "..."):
			return 2
		case char != ' ' && char != '\n' && char != '\t' && char != '\r':
			empty = false
		}
	}
	return 2
}
