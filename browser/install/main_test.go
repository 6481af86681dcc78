package install

import (
	"os"
	"testing"

	"satchel/agent/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }
