package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"
)

// startTime limits the start of Chromium in Doctor.
const startTime = 30 * time.Second

// sandboxDenied matches what Chromium, and Playwright for it, print if the system denies
// what Chromium's sandbox needs.
var sandboxDenied = regexp.MustCompile(`(?i)no usable sandbox|sandboxing failed|zygote_host_impl_linux|sys_chroot`)

// Explain adds what to do to an error of starting Chromium, if its sandbox is denied.
func Explain(err error) error {
	if err == nil || !sandboxDenied.MatchString(err.Error()) {
		return err
	}
	return fmt.Errorf(
		"this machine or container denies Chromium's sandbox, see \"The sandbox\" in docs/browser.md: %w",
		err,
	)
}

// checkStart starts Chromium once with an empty page, in its sandbox unless the user is
// root, as sessions do.
func checkStart(ctx context.Context, chromium string, root bool) (err error) {
	dir, err := os.MkdirTemp("", "satchel-doctor-")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	args := []string{
		"--headless", "--disable-gpu",
		"--no-first-run", "--user-data-dir=" + dir,
		"--dump-dom", "about:blank",
	}
	if root {
		args = append(args, "--no-sandbox")
	}
	_, err = command{
		limit: startTime,
		name:  chromium,
		args:  args,
		env:   []string{"HOME=" + dir},
	}.run(ctx)
	return Explain(err)
}
