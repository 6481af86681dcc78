//go:build ignore

// Prints the OpenAPI description, for the linter.
package main

import (
	"fmt"
	"os"

	"satchel/httpapi"
)

func main() {
	data, err := httpapi.Describe("0.0.0-ci")
	if err == nil {
		_, err = os.Stdout.Write(data)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
