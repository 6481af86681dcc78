// Package cputime measures CPU time, for tests and benchmarks.
package cputime
