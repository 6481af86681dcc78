package agent

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

// Chain describes the executions that led to something: the first of them, and
// how many there are. The zero value means none.
type Chain struct {
	Root  string
	Depth int
	// Remote reports that the chain arrived with a request, from an execution
	// that called this server.
	Remote bool
}

// Next returns the chain of what an execution at the end of this chain starts.
// id is the execution that is started.
func (c Chain) Next(id string) Chain {
	root := c.Root
	if root == "" {
		root = id
	}
	return Chain{Root: root, Depth: c.Depth + 1}
}

// ChainHeader is the header that carries the chain in an execution's requests
// to this server.
const ChainHeader = "Satchel-Chain"

// chainKey signs chains. Only the process that wrote them reads them.
var chainKey = func() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return key
}()

// Signed encodes a chain as a signed header value.
func (c Chain) Signed() string {
	text := strconv.Itoa(c.Depth) + "." + c.Root
	return text + "." + signChain(text)
}

// ReadChain decodes a value written by Signed. It returns false if the value is
// not valid.
func ReadChain(value string) (Chain, bool) {
	at := strings.LastIndexByte(value, '.')
	if at < 0 || !hmac.Equal([]byte(signChain(value[:at])), []byte(value[at+1:])) {
		return Chain{}, false
	}
	depth, root, _ := strings.Cut(value[:at], ".")
	n, err := strconv.Atoi(depth)
	return Chain{Root: root, Depth: n, Remote: true}, err == nil
}

func signChain(text string) string {
	mac := hmac.New(sha256.New, chainKey)
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Chain returns the chain that ends with the execution.
func (e *Execution) Chain() Chain {
	chain := Chain{Root: e.RootID, Depth: e.Depth}
	if chain.Root == "" { // written before chains existed
		chain.Root = e.ID
	}
	return chain
}
