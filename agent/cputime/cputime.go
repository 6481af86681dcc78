// Package cputime measures processor time, for tests and benchmarks.
package cputime
