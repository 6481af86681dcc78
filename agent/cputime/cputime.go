// Package cputime measures the CPU time of this process.
package cputime
