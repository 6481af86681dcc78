// Package browse controls browser sessions by natural-language instructions. A language
// model reads a snapshot of the page and answers with actions of a fixed
// schema, which the session performs. The content of pages is only data for the
// model, and its answers cannot do more than the schema allows: there are no
// scripts, uploads or cookies, and the values of variables are typed only into
// pages of allowed hosts.
package browse
