module satchel/sdk/go

go 1.24
