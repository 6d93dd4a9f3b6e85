-- Why a worker cannot make sandboxes, by its own word. NULL where it can.
ALTER TABLE workers ADD COLUMN problem TEXT;
