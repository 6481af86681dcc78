// Package template reads paths into JSON values and fills {{path}} templates in
// the data of a workflow's nodes.
//
// A template is {{path}} or {{path | filter | filter:"argument"}}. A path is a
// name that the Scope knows, then keys and indexes: contact.name, items[0].id,
// nodes.fetch.body.rows[2]["First name"]. It is walked over plain JSON values
// and never evaluated, so constructor and __proto__ are keys like any other. A
// quoted text may take the place of a path: {{"{{"}} writes two braces.
//
// A string that is one template and nothing else becomes the value itself,
// with its JSON type; within other text a value is written as text: null as
// nothing, objects and lists as JSON. What was inserted is never read again
// for templates.
//
// A path that leads nowhere, and a filter that cannot work on its value, give
// empty text and a warning, or an error when Options.Strict is set.
//
// Filters:
//
//	default:X   X in the place of what is missing, null or empty text
//	optional    null in the place of what is missing
//	text        the text of a value; null stays
//	upper lower trim
//	json        the value as JSON text; null for what is missing
//	length      characters of a text, elements of a list, keys of an object
//	first last  of a list, or the character of a text
//	join:", "   the elements of a list as one text; ", " by default
//	date:"YYYY-MM-DD HH:mm"   see FormatTime; YYYY-MM-DD by default
//	url         percent-encoded for a query or one part of a path; a space is %20
//
// Arguments are texts in double or single quotes with the escapes of JSON,
// numbers, true, false, null, and [] for an empty list.
package template
