package agent

import (
	"fmt"
	"slices"
	"strings"
)

// nodeType says what the data of a node of one type looks like.
type nodeType struct {
	fields  []nodeField
	handles []string // ways out beside "error"; nil: one, whatever it is called
	normal  string   // the way that an edge without a handle takes
	oneOf   []string // an executable node has one of these, and only one
}

// nodeField is one key of a node's data.
type nodeField struct {
	name     string
	kinds    []string // text, number, bool, list, object, any, conditions, cases
	enum     []string // of a text
	required bool     // of a node that is to be executed
}

// fieldsOf reads "name:kind name!:kind|kind name:=a,b"; ! marks what an
// executable node must have, = lists the values that a text may have.
func fieldsOf(spec string) []nodeField {
	var fields []nodeField
	for word := range strings.FieldsSeq(spec) {
		name, kind, _ := strings.Cut(word, ":")
		f := nodeField{name: strings.TrimSuffix(name, "!"), required: strings.HasSuffix(name, "!")}
		if values, ok := strings.CutPrefix(kind, "="); ok {
			f.kinds, f.enum = []string{"text"}, strings.Split(values, ",")
		} else {
			f.kinds = strings.Split(kind, "|")
		}
		fields = append(fields, f)
	}
	return fields
}

// The types of nodes, as the interface lists them.
var nodeTypes = map[string]nodeType{
	NodeTrigger: {fields: fieldsOf("event:text filter:conditions gateway_id:text auth:object")},
	NodeIfElse: {fields: fieldsOf("combinator:=and,or conditions:conditions condition:text"),
		handles: []string{"true", "false"}, normal: "true", oneOf: []string{"conditions", "condition"}},
	NodeSwitch: {fields: fieldsOf("value:any cases!:cases"), normal: "default"}, // handles: its cases
	NodeLoop: {fields: fieldsOf("items!:any item_variable:text concurrency:number max_iterations:number continue_on_error:bool"),
		handles: []string{HandleLoop, HandleDone}, normal: HandleDone},
	NodeWait: {fields: fieldsOf("duration:number unit:=seconds,minutes,hours,days until:text event:text timeout:number"),
		oneOf: []string{"duration", "until", "event"}},
	NodeApproval: {fields: fieldsOf("title:text message:text timeout:number session_id:text"),
		handles: []string{"approved", "rejected", "timeout"}, normal: "approved"},
	"set":              {fields: fieldsOf("values!:object")},
	"search":           {fields: fieldsOf("query!:text limit:number source_id:text mode:=hybrid,vector,keyword min_score:number")},
	"sql":              {fields: fieldsOf("query!:text params:list|object")},
	"code":             {fields: fieldsOf("code!:text")},
	"workflow":         {fields: fieldsOf("workflow_id!:text input:object wait:bool")},
	"webhook-response": {fields: fieldsOf("status:number headers:object body:any")},
	"http-request": {fields: fieldsOf(`method:=GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS url!:text headers:object query:object body:any
		body_type:=json,form,text auth:object response_type:=auto,json,text,base64 fail_on_status:bool`)},
	"chat": {fields: fieldsOf(`prompt!:text system_prompt:text model:text temperature:number tools:list|bool sources:list|bool
		conversation_id:text output_schema:object max_steps:number`)},
	"tool":           {fields: fieldsOf("tool_id!:text arguments:object")},
	"email":          {fields: fieldsOf("to!:text|list subject:text body:text html:bool cc:text|list bcc:text|list reply_to:text gateway_id:text")},
	"chatbot_a":      {fields: fieldsOf("to!:text|number message!:text parse_mode:text gateway_id:text")},
	"chatbot_b":      {fields: fieldsOf("to!:text message!:text gateway_id:text")},
	"sms":            {fields: fieldsOf("to!:text message!:text gateway_id:text")},
	"team_chat":      {fields: fieldsOf("channel!:text message!:text thread_ts:text format:=plain,mrkdwn gateway_id:text")},
	"community_chat": {fields: fieldsOf("channel!:text message!:text reply_to:text gateway_id:text")},
	"navigate":       {fields: fieldsOf("url!:text session_id:text wait_until:=load,domcontentloaded,networkidle,commit")},
	"click":          {fields: fieldsOf("selector!:text session_id:text button:=left,right,middle")},
	"type":           {fields: fieldsOf("selector!:text text!:text session_id:text clear:bool delay:number")},
	"press":          {fields: fieldsOf("key!:text selector:text session_id:text")},
	"extract":        {fields: fieldsOf("selector!:text attribute:text all:bool session_id:text")},
	"screenshot":     {fields: fieldsOf("selector:text full_page:bool session_id:text")},
	"wait-for":       {fields: fieldsOf("selector:text state:=attached,detached,visible,hidden timeout:number url:text session_id:text")},
	"select":         {fields: fieldsOf("selector!:text value:text values:list label:text session_id:text")},
	"scroll":         {fields: fieldsOf("selector:text direction:=up,down,left,right,top,bottom amount:number session_id:text")},
	"evaluate":       {fields: fieldsOf("script!:text args:any session_id:text")},
}

// Types of nodes that the shape of a graph depends on.
const (
	NodeTrigger  = "trigger"
	NodeIfElse   = "if-else"
	NodeSwitch   = "switch"
	NodeLoop     = "loop"
	NodeWait     = "wait"
	NodeApproval = "approval"
)

// Ways out of a node that have a meaning of their own.
const (
	HandleLoop  = "loop"  // into a loop's body
	HandleDone  = "done"  // behind a loop
	HandleError = "error" // any node's, when it fails
)

// common are the keys that the data of every node may have.
var common = fieldsOf("label:text disabled:bool timeout_ms:number retry:object on_error:=stop,continue,branch at_most_once:bool")

var retryFields = fieldsOf("max_attempts:number delay_ms:number backoff:=constant,exponential max_delay_ms:number")

// numberBounds hold for numbers that are not templates.
var numberBounds = map[string][2]float64{
	"timeout_ms": {1, 3_600_000}, "retry.max_attempts": {1, 10}, "retry.delay_ms": {0, 300_000}, "retry.max_delay_ms": {0, 300_000},
	"loop.concurrency": {1, 100}, "loop.max_iterations": {1, 10_000}, "wait.duration": {0, 31_622_400}, "wait.timeout": {0, 31_622_400},
	"approval.timeout": {0, 31_622_400}, "webhook-response.status": {200, 599}, "search.limit": {1, 50}, "search.min_score": {0, 1},
}

// isTemplate reports whether a value is only known when its node runs.
func isTemplate(v any) bool {
	s, ok := v.(string)
	return ok && strings.Contains(s, "{{")
}

// checkData checks the data of a node; an executable one must be whole.
func (n *Node) checkData(executable bool, complain func(field, issue string)) {
	t, known := nodeTypes[n.Type]
	checkFields(common, n.Data, "", false, complain)
	if retry, ok := n.Data["retry"].(map[string]any); ok {
		checkFields(retryFields, retry, "retry.", false, complain)
	}
	if !known {
		if executable {
			complain("type", "is not known: "+Clip(n.Type, 60))
		}
		return
	}
	checkFields(t.fields, n.Data, n.Type+".", executable, complain)
	if n.Type == NodeTrigger {
		checkHookAuth(n.Data["auth"], executable, complain)
	}
	if !executable || t.oneOf == nil {
		return
	}
	given := 0
	for _, name := range t.oneOf {
		if v := n.Data[name]; v != nil && v != "" {
			given++
		}
	}
	if given != 1 {
		complain("data", "needs one of "+strings.Join(t.oneOf, ", "))
	}
}

// checkFields checks the values of known keys. owner leads to the bounds of
// numbers, and shows in the name of what lies within another key.
func checkFields(fields []nodeField, data map[string]any, owner string, executable bool, complain func(field, issue string)) {
	for _, f := range fields {
		name := "data." + f.name
		if owner == "retry." {
			name = "data.retry." + f.name
		}
		v := data[f.name]
		switch {
		case v == nil:
			if f.required && executable {
				complain(name, "is required")
			}
		case v == "" && f.required && executable:
			complain(name, "is required")
		case isTemplate(v):
		default:
			if issue := f.check(v, owner); issue != "" {
				complain(name, issue)
			}
		}
	}
}

var kindWords = map[string]string{
	"text": "a string", "number": "a number", "bool": "true or false", "list": "a list", "object": "an object",
	"conditions": "a list of conditions", "cases": "a list of cases",
}

// check tells what is wrong with a value that is no template; "" when nothing.
func (f nodeField) check(v any, owner string) string {
	for _, kind := range f.kinds {
		if !isKind(kind, v) {
			continue
		}
		switch value := v.(type) {
		case string:
			if f.enum != nil && !slices.Contains(f.enum, value) && !(f.name == "method" && slices.Contains(f.enum, strings.ToUpper(value))) {
				return "must be " + strings.Join(f.enum, ", ")
			}
		case float64:
			bounds, ok := numberBounds[owner+f.name]
			if !ok {
				bounds, ok = numberBounds[f.name]
			}
			if ok && (value < bounds[0] || value > bounds[1]) {
				return fmt.Sprintf("must be from %.0f to %.0f", bounds[0], bounds[1])
			}
		case []any:
			return checkEntries(kind, value)
		}
		return ""
	}
	words := make([]string, len(f.kinds))
	for i, kind := range f.kinds {
		words[i] = kindWords[kind]
	}
	return "must be " + strings.Join(words, " or ")
}

func isKind(kind string, v any) bool {
	ok := kind == "any"
	switch v.(type) {
	case string:
		ok = ok || kind == "text"
	case float64:
		ok = ok || kind == "number"
	case bool:
		ok = ok || kind == "bool"
	case []any:
		ok = ok || kind == "list" || kind == "conditions" || kind == "cases"
	case map[string]any:
		ok = ok || kind == "object"
	}
	return ok
}

// checkEntries checks the entries of a list of conditions or cases.
func checkEntries(kind string, list []any) string {
	if kind != "conditions" && kind != "cases" {
		return ""
	}
	seen := map[string]bool{}
	for i, entry := range list {
		object, ok := entry.(map[string]any)
		if !ok {
			return fmt.Sprintf("must hold objects only; entry %d is none", i)
		}
		if kind == "conditions" {
			if _, ok := object["operator"].(string); !ok {
				return fmt.Sprintf("needs an operator in entry %d", i)
			}
			continue
		}
		id, ok := object["id"].(string)
		switch {
		case !ok || id == "":
			return fmt.Sprintf("needs an id in entry %d", i)
		case seen[id] || id == HandleError || id == nodeTypes[NodeSwitch].normal:
			return fmt.Sprintf("has an id that is taken in entry %d", i)
		}
		seen[id] = true
		conditions, given := object["conditions"]
		if list, ok := conditions.([]any); given && !ok {
			return fmt.Sprintf("needs a list of conditions in entry %d", i)
		} else if issue := checkEntries("conditions", list); issue != "" {
			return issue
		}
	}
	return ""
}
