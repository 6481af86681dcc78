package mcp

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"satchel/agent"
)

// registryAnswer is a registry's answer, see server.schema.json of
// https://github.com/modelcontextprotocol/registry.
type registryAnswer struct {
	Servers []struct {
		Server registryServer `json:"server"`
		Meta   struct {
			Official struct {
				Status string `json:"status"`
			} `json:"io.modelcontextprotocol.registry/official"`
		} `json:"_meta"`
	} `json:"servers"`
	Metadata struct {
		NextCursor string `json:"nextCursor"`
	} `json:"metadata"`
}

type registryServer struct {
	Name, Title, Description, Version string
	Status                            string // before the registry had it in _meta
	Remotes                           []struct {
		Type, URL string
		Headers   []registryInput
		Variables map[string]registryInput
	}
	Packages []registryPackage
}

type registryPackage struct {
	RegistryType, Identifier, Version, RuntimeHint string
	RuntimeArguments, PackageArguments             []registryInput
	EnvironmentVariables                           []registryInput
	Transport                                      struct{ Type string }
}

// registryInput is a header, a variable or an argument.
type registryInput struct {
	Type, Name, Description, Value, Default, ValueHint string
	IsRequired, IsSecret                               bool
}

// server returns a listing as it is shown, with its untrusted texts cut to length.
func (s registryServer) server() CatalogueServer {
	out := CatalogueServer{
		Name:        agent.Clip(s.Name, 200),
		Title:       agent.Clip(cmp.Or(s.Title, s.Name), 200),
		Description: agent.Clip(s.Description, 1000),
		Version:     agent.Clip(s.Version, 50),
		Remotes:     []CatalogueRemote{},
		Packages:    []CataloguePackage{},
	}
	for _, r := range s.Remotes[:min(len(s.Remotes), maxListed)] {
		address, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(r.URL))
		if err != nil ||
			address.Scheme != "https" && address.Scheme != "http" ||
			address.Host == "" ||
			len(r.URL) > 2000 ||
			r.Type != "streamable-http" && r.Type != "sse" {
			continue
		}
		one := CatalogueRemote{
			Type:      r.Type,
			URL:       r.URL,
			Headers:   inputs(r.Headers),
			Variables: []CatalogueInput{},
		}
		for _, name := range slices.Sorted(maps.Keys(r.Variables)) {
			if v := r.Variables[name]; len(one.Variables) < maxListed {
				v.Name = name
				one.Variables = append(one.Variables, v.input())
			}
		}
		out.Remotes = append(out.Remotes, one)
	}
	for _, p := range s.Packages[:min(len(s.Packages), maxListed)] {
		if one, ok := p.cataloguePackage(); ok {
			out.Packages = append(out.Packages, one)
		}
	}
	return out
}

func inputs(list []registryInput) []CatalogueInput {
	out := []CatalogueInput{}
	for _, i := range list[:min(len(list), maxListed)] {
		out = append(out, i.input())
	}
	return out
}

func (i registryInput) input() CatalogueInput {
	return CatalogueInput{
		Name:        agent.Clip(i.Name, 200),
		Description: agent.Clip(i.Description, 500),
		Required:    i.IsRequired,
		Secret:      i.IsSecret,
		Value:       agent.Clip(cmp.Or(i.Value, i.Default), 1000),
	}
}

// text returns the value of an argument, or a placeholder.
func (i registryInput) text() string {
	return agent.Clip(
		cmp.Or(
			i.Value,
			i.Default,
			"<"+cmp.Or(i.ValueHint, strings.TrimLeft(i.Name, "-"), "value")+">",
		),
		1000,
	)
}

// cataloguePackage returns a package with its entry for the operator's file. ok is false if it
// does not use standard input and output, or if no known program starts it.
func (p registryPackage) cataloguePackage() (out CataloguePackage, ok bool) {
	out = CataloguePackage{
		Registry:   agent.Clip(p.RegistryType, 50),
		Identifier: agent.Clip(p.Identifier, 300),
		Version:    agent.Clip(p.Version, 50),
		Secrets:    []CatalogueInput{},
	}
	out.Entry.Env = map[string]string{}
	var variables []string
	for _, v := range p.EnvironmentVariables[:min(len(p.EnvironmentVariables), maxListed)] {
		if variables = append(variables, v.Name); v.IsSecret {
			out.Secrets = append(out.Secrets, v.input())
		} else if v.IsRequired || v.Value != "" || v.Default != "" {
			out.Entry.Env[agent.Clip(v.Name, 100)] = v.text()
		}
	}
	command, before, what := p.startCommand(variables)
	if command == "" || p.Transport.Type != "" && p.Transport.Type != "stdio" || p.Identifier == "" {
		return out, false
	}
	out.Entry.Command = command
	out.Entry.Args = slices.Concat(
		arguments(p.RuntimeArguments),
		before,
		[]string{what},
		arguments(p.PackageArguments),
	)
	return out, true
}

// startCommand returns the program that starts a package, its arguments before the
// package, and the package as that program names it.
func (p registryPackage) startCommand(variables []string) (command string, before []string, what string) {
	at := func(separator string) string {
		if p.Version == "" || p.Version == "latest" {
			return p.Identifier
		}
		return p.Identifier + separator + p.Version
	}
	switch p.RegistryType {
	case "npm":
		return cmp.Or(p.RuntimeHint, "npx"), []string{"-y"}, at("@")
	case "pypi":
		return cmp.Or(p.RuntimeHint, "uvx"), nil, at("@")
	case "oci":
		before = []string{"run", "-i", "--rm"}
		for _, name := range variables {
			before = append(before, "-e", agent.Clip(name, 100))
		}
		if strings.ContainsAny(p.Identifier[strings.LastIndex(p.Identifier, "/")+1:], ":@") {
			return "docker", before, p.Identifier
		}
		return "docker", before, at(":")
	case "nuget":
		return cmp.Or(p.RuntimeHint, "dnx"), []string{"--yes"}, at("@")
	}
	return "", nil, ""
}

// arguments returns the arguments of a command line; optional ones without a
// value are left out.
func arguments(list []registryInput) []string {
	out := []string{}
	for _, a := range list[:min(len(list), maxListed)] {
		if !a.IsRequired &&
			a.Value == "" &&
			a.Default == "" &&
			(a.Type != "named" || a.ValueHint != "") {
			continue
		}
		if a.Type == "named" {
			out = append(out, agent.Clip(a.Name, 200))
			if a.Value == "" && a.Default == "" && a.ValueHint == "" {
				continue // a flag
			}
		}
		out = append(out, a.text())
	}
	return out
}
