// Package egress is Satchel's only way out to the network: an HTTP client and
// a dialer that refuse to reach addresses an outsider must not reach through
// the server.
//
// What holds for every call, whoever wrote the URL:
//
//   - The address is judged in the dialer's Control hook, after DNS and right
//     before connect(2), for each address that is tried. A name that changes
//     its answer, a redirect and the second address of a happy-eyeballs race
//     meet the same check, because there is no other path to a socket.
//   - Refused are loopback, private, shared (CGNAT), link-local, unique local,
//     multicast, broadcast, unspecified, documentation, benchmark and reserved
//     ranges, cloud metadata addresses, IPv6 forms that carry such an IPv4
//     address, and IPv6 zones. Policy opens ranges that the operator named.
//   - Only http and https, no user information in the URL, and no host written
//     as a decimal, octal, hexadecimal or shortened number.
//   - At most MaxRedirects redirects. Once a redirect leaves the host, or goes
//     from https to http, headers that carry credentials and the Referer are
//     dropped for the rest of the chain.
//   - A Credential goes only to its own hosts, over https unless the operator
//     opened the address. It is attached below redirects, when the URL is final.
//   - No proxy from the environment, no cookie jar, TLS 1.2 or later, response
//     headers and bodies of bounded size, a bounded wait for the first header.
//
// Explain says to users why a request failed.
//
// Ports are not restricted. The total time of a call is its context's.
package egress
