package sqlsandbox

import (
	"maps"
	"slices"
	"strings"

	lib "modernc.org/sqlite/lib"

	"satchel/agent"
)

// guard decides what the statements of one connection may do. SQLite asks it about
// everything that a statement refers to while compiling it, and while running it for what
// table-valued pragmas compile; guard allows what is listed here and nothing else. See
// https://www.sqlite.org/c3ref/set_authorizer.html.
//
// SQLite does not ask about the columns that NATURAL JOIN and USING compare, which would
// allow guessing the contents of a closed table. So a statement may not even contain the
// name of a closed table, not even as text, which must be passed as a parameter.
type guard struct {
	open bool // a statement of the program itself is running

	rules       map[string]Rule // Options.Rules
	laterTables []string        // Options.LaterTables

	// What the file contains, in lower case.
	tables   map[string]bool // and views
	views    map[string]bool
	modules  map[string]bool         // of virtual tables
	triggers map[string]string       // trigger -> its table
	foreign  map[string][]foreignKey // by the referring table

	// The client's statement, and what it does as far as SQLite has asked.
	statement *Statement
	changed   map[string]bool // tables it changes, also through triggers
	targets   map[string]bool // tables it changes directly
	refused   *agent.Error    // the first refusal
}

// foreignKey is a reference to another table; if cascades is set, rows are deleted with
// those that they refer to.
type foreignKey struct {
	parent, column string
	cascades       bool
}

const guardedObjects = `SELECT type, name, tbl_name, '' FROM sqlite_schema WHERE type IN ('table','view','trigger')
	UNION ALL SELECT 'module', name, '', '' FROM pragma_module_list
	UNION ALL SELECT 'foreign key ' || f.on_delete, m.name, f."table", f."from"
	FROM sqlite_schema m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'`

// load reads the file's schema. Tables whose names begin with one of laterTables may be
// created later; after any other change to the schema the connection is closed, see
// SchemaChanged.
func (g *guard) load(conn *Conn) error {
	g.tables, g.views, g.modules = map[string]bool{}, map[string]bool{}, map[string]bool{}
	g.triggers, g.foreign = map[string]string{}, map[string][]foreignKey{}
	rows, err := conn.Trusted(guardedObjects)
	for _, row := range rows {
		var o [4]string
		for i := range o {
			text, _ := row[i].(string)
			o[i] = lowerASCII(text)
		}
		switch o[0] {
		case "table", "view":
			g.tables[o[1]], g.views[o[1]] = true, o[0] == "view"
		case "trigger":
			g.triggers[o[1]] = o[2]
		case "module":
			g.modules[o[1]] = true
		default:
			g.foreign[o[1]] = append(g.foreign[o[1]], foreignKey{o[2], o[3], o[0] == "foreign key cascade"})
		}
	}
	return err
}

// begin allows a client's statement to be compiled and run.
func (g *guard) begin(s *Statement) {
	g.statement, g.changed, g.targets, g.refused = s, map[string]bool{}, map[string]bool{}, nil
}

// end refuses everything again.
func (g *guard) end() { g.statement = nil }

// isHidden reports whether a table, in lower case, is internal to the program.
func isHidden(table string) bool { return strings.HasPrefix(table, "_") }

// systemTables are SQLite's own tables that can be read: the definitions of tables, which
// are not secret, and their last row numbers.
var systemTables = set("sqlite_schema sqlite_master sqlite_sequence")

// isClosed reports whether a table, in lower case, cannot be read.
func (g *guard) isClosed(table string) bool {
	switch {
	case isHidden(table):
		return g.tables[table] ||
			slices.ContainsFunc(g.laterTables, func(prefix string) bool {
				return strings.HasPrefix(table, prefix)
			})
	case strings.HasPrefix(table, "sqlite_stat"), strings.HasPrefix(table, "sqlite_temp"):
		return true
	}
	return g.modules[table] && !openModules[table]
}

// mentionedClosed returns a closed table whose name the statement contains, or "".
func (g *guard) mentionedClosed() string {
	found := ""
	for name := range g.statement.names {
		if g.isClosed(name) && (found == "" || name < found) {
			found = name
		}
	}
	return found
}

// refuse records the first refusal and returns false.
func (g *guard) refuse(detail, value, format string, args ...any) bool {
	if g.refused == nil {
		g.refused = agent.Errorf(
			agent.CodeForbiddenOperation,
			format,
			args...,
		).With(detail, agent.Clip(value, 100))
	}
	return false
}

// allows answers SQLite's question whether an action may be compiled. context is the
// trigger, view or subquery that the action comes from, or "" for the statement itself
// and for actions of foreign keys.
func (g *guard) allows(action int32, left, right, database, context string) bool {
	switch {
	case g.open:
		return true
	case g.statement == nil:
		return false
	}
	switch action {
	case lib.SQLITE_SELECT, lib.SQLITE_RECURSIVE:
		return true
	case lib.SQLITE_FUNCTION:
		return openFunctions[lowerASCII(right)] ||
			g.refuse("function", right, "the function %s is not available to SQL", agent.Clip(right, 60))
	case lib.SQLITE_READ:
		return g.mayRead(lowerASCII(left), lowerASCII(right), lowerASCII(database), lowerASCII(context))
	case lib.SQLITE_INSERT, lib.SQLITE_UPDATE, lib.SQLITE_DELETE:
		return g.mayChange(action, lowerASCII(left), lowerASCII(right), lowerASCII(database), lowerASCII(context))
	case lib.SQLITE_PRAGMA:
		return g.mayUsePragma(lowerASCII(left), right)
	}
	return g.refuse("statement", g.statement.Kind, "this is not available to SQL")
}

// mayRead decides about reading a column; column is "" if the statement uses the table
// but none of its columns, and then table may also name a common table expression.
func (g *guard) mayRead(table, column, database, context string) bool {
	var allowed bool
	switch {
	case g.isCheck():
		allowed = true
	case database != "" && database != "main":
	case g.isClosed(table):
		allowed = g.inOwnTrigger(context) ||
			context == "" && g.enforcesForeignKey(table, func(k foreignKey) bool { return k.column == column })
	case g.tables[table], systemTables[table], openModules[table]:
		allowed = true
	case strings.HasPrefix(table, "pragma_"):
		_, allowed = openPragmas[strings.TrimPrefix(table, "pragma_")]
	default: // a common table expression
		allowed = column == ""
	}
	return allowed || g.closed(table)
}

func (g *guard) closed(table string) bool {
	return g.refuse("table", table, "the table %s is closed to SQL", agent.Clip(table, 60))
}

// isCheck reports whether the statement is a check of the whole file. Its result says what
// is wrong and never contains data of a table.
func (g *guard) isCheck() bool {
	return g.statement.Kind == "PRAGMA" && (g.statement.names["integrity_check"] || g.statement.names["quick_check"])
}

// mayChange decides about changing a table, and column for an update.
func (g *guard) mayChange(action int32, table, column, database, context string) bool {
	direct := context == ""
	switch {
	case database != "main":
		return g.closed(table)
	case g.inOwnTrigger(context):
	case direct &&
		action == lib.SQLITE_DELETE &&
		g.enforcesForeignKey(table, func(k foreignKey) bool { return k.cascades }):
	case !direct ||
		isHidden(table) ||
		systemTables[table] ||
		!g.tables[table]:
		return g.closed(table)
	default:
		if !g.followsRules(action, table, column) {
			return false
		}
		g.targets[table] = true
	}
	g.changed[table] = true
	return true
}

// followsRules applies the rules to a direct change by the statement.
func (g *guard) followsRules(action int32, table, column string) bool {
	rule, ok := g.rules[table]
	allowed := !ok ||
		action == lib.SQLITE_DELETE && rule.Delete ||
		action == lib.SQLITE_UPDATE && slices.Contains(rule.Update, column)
	return allowed || g.refuse("table", table, "%s", rule.Reason)
}

// inOwnTrigger reports whether context is one of the program's own triggers, fired by a change
// that was allowed, or a view that such a trigger reads. What such a trigger does is
// always allowed. Common table expressions and aliases can be a context too, so the name
// must not occur in the statement.
func (g *guard) inOwnTrigger(context string) bool {
	table, fired := g.triggers[context]
	return (fired && g.changed[table] || g.views[context]) &&
		isHidden(context) &&
		!g.statement.names[context]
}

// enforcesForeignKey reports whether SQLite enforces a foreign key from table to one that the
// statement changes. SQLite names no context for that. But a statement directly changes
// only one table, about which SQLite asks first, and it cannot directly read a hidden
// table, since it cannot name one.
func (g *guard) enforcesForeignKey(table string, key func(foreignKey) bool) bool {
	return slices.ContainsFunc(g.foreign[table], func(k foreignKey) bool {
		return g.changed[k.parent] && key(k)
	})
}

// openPragmas can be read; true means that an argument is also allowed: a table, an index
// or a number of rows. None of them sets anything then.
var openPragmas = map[string]bool{
	"table_info": true, "table_xinfo": true, "table_list": true, "index_list": true, "index_info": true,
	"index_xinfo": true, "foreign_key_list": true, "foreign_key_check": true,
	"integrity_check": true, "quick_check": true, "user_version": false, "application_id": false,
	"schema_version": false, "data_version": false, "page_count": false, "page_size": false, "freelist_count": false,
	"max_page_count": false, "auto_vacuum": false, "encoding": false, "journal_mode": false, "synchronous": false,
	"foreign_keys": false, "recursive_triggers": false, "query_only": false, "busy_timeout": false, "cache_size": false,
	"compile_options": false, "collation_list": false, "function_list": false,
	"module_list": false, "pragma_list": false,
}

// mayUsePragma decides about a PRAGMA. argument is "" without one.
func (g *guard) mayUsePragma(name, argument string) bool {
	takesArgument, ok := openPragmas[name]
	check := name == "integrity_check" || name == "quick_check"
	object := lowerASCII(argument)
	switch {
	case !ok, check && !g.isCheck():
		return g.refuse("pragma", name, "PRAGMA %s is not available to SQL", agent.Clip(name, 60))
	case argument == "":
		return true
	case !takesArgument:
		return g.refuse("pragma", name, "PRAGMA %s can only be read", name)
	case isHidden(object), strings.HasPrefix(object, "sqlite_autoindex__"):
		return g.closed(object)
	}
	return true
}

// Targets lists the tables that the last statement changed directly.
func (c *Conn) Targets() []string {
	return slices.Sorted(maps.Keys(c.guard.targets))
}

// openModules are the table-valued functions that read nothing but their arguments.
var openModules = set("json_each json_tree jsonb_each jsonb_tree")

// openFunctions are the functions that compute from their arguments alone.
// Left out are those that load code, read raw pages or indexes, write to the
// program's log, or report earlier statements of other clients.
var openFunctions = set(`-> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat
	concat_ws cos cosh count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp
	first_value floor format glob group_concat hex if ifnull iif instr json json_array json_array_insert
	json_array_length json_error_position json_extract json_group_array json_group_object json_insert json_object
	json_patch json_pretty json_quote json_remove json_replace json_set json_type json_valid jsonb jsonb_array
	jsonb_array_insert jsonb_extract jsonb_group_array jsonb_group_object jsonb_insert jsonb_object jsonb_patch
	jsonb_remove jsonb_replace jsonb_set julianday lag last_value lead length like likelihood likely ln log log10 log2
	lower ltrim max min mod nth_value ntile nullif octet_length percent_rank pi pow power printf quote radians random
	randomblob rank replace round row_number rtrim sign sin sinh soundex sqlite_source_id sqlite_version sqrt strftime
	string_agg substr substring subtype sum tan tanh time timediff total trim trunc typeof unhex unicode unistr
	unistr_quote unixepoch unlikely upper zeroblob`)

func set(names string) map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(names) {
		m[n] = true
	}
	return m
}
