-- Digests of the images that a worker has, with a space between. NULL where it does not say.
ALTER TABLE workers ADD COLUMN images TEXT;
