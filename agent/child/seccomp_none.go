//go:build linux && !amd64 && !arm64

package child

import "errors"

const auditArch = 0

func filterSystemCalls() error { return errors.ErrUnsupported }
