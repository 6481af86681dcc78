// Package condition evaluates the conditions of a workflow: of if-else and
// switch nodes and of triggers' filters.
//
// A condition is {left, operator, right}; left and right are plain JSON values
// whose templates are already filled. Operators:
//
//	equals ==  not_equals !=      numbers by value, else by their text; lists and objects by content
//	contains  not_contains        a text within a text, an element of a list, a key of an object
//	starts_with  ends_with        texts
//	matches                       an RE2 pattern, anywhere in the text
//	gt >  gte >=  lt <  lte <=    numbers, else the order of the texts; never with null
//	in  not_in                    left is an element of the list right, or of its comma-separated text
//	is_empty  is_not_empty        null, "", [] and {} are empty
//	is_true  is_false             true, 1 and their texts; false, 0 and their texts
//	exists  not_exists            anything but null
//
// Two values are compared as numbers if both are numbers or text that parses as
// a finite decimal number: "10" is greater than 9, and "1.0" equals 1.
package condition
