// Package browse drives browser sessions by instructions in words. A language
// model reads a snapshot of the page and answers with actions of a fixed schema,
// which the session performs. What pages say is data to the model, and nothing
// that it answers can do more than the schema: there are no scripts, uploads or
// cookies, and the values of variables are typed only into pages of allowed
// hosts.
package browse
