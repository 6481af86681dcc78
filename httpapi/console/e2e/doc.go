// Package e2e tests the console, the widget and live views in Chromium, as people use
// them.
package e2e
