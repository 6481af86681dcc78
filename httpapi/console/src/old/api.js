export { absolute, ApiError, download, get, key, path, post, put, remove, stream, upload } from "../data";
