// Package models manages the text models of a data folder. Each is a folder
// with the files of package pretrained and a manifest with their hashes. Models
// are added from a folder or downloaded, opened when they are first used,
// shared by all agents, and freed after some time without use.
package models
