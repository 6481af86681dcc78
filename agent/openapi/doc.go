// Package openapi reads API descriptions and builds requests for their
// operations: OpenAPI 3.0 and 3.1, Swagger 2.0 and Postman collections 2.1, in
// JSON or YAML.
//
// The reader is tolerant, because real descriptions violate their specification
// in many places. Parts that it cannot use become warnings. References are
// followed within the document only.
//
// Read parses in a child process. Schemas become JSON Schema 2020-12.
package openapi

import "time"

// Limits of a description, in addition to those of package agent.
const (
	maxDepth     = 200       // nesting of the document
	maxValues    = 4_000_000 // in the document, with its YAML aliases expanded
	maxHops      = 20        // references that lead to references
	maxTotal     = 24 << 20  // bytes of the schemas of all operations
	maxText      = 1000      // characters of a description, which is untrusted input to a model
	maxLine      = 200       // characters of a summary, a title or a tag
	maxWarnings  = 50
	maxServers   = 50
	maxSecurity  = 10
	maxTags      = 20
	maxName      = 200              // bytes of an operation's id or a parameter's name
	readTime     = 10 * time.Second // of the processor, for reading
	readWait     = time.Minute      // for reading on a busy machine
	readMemory   = 256 << 20
	smallSchema  = 2 << 10 // bytes that a schema may always take
	maxPathBytes = 2000
)
