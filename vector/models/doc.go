// Package models keeps the text models of one data folder: each is a folder
// with the files of package pretrained, and a manifest with their hashes. Models
// are added from a folder or downloaded, opened when they are first used, shared
// by all agents, and freed when nobody has used them for a while.
package models
