//go:build !linux

package store

func dropProgramPages() {}
